SELECT sender_member_id, client_message_id, broker_message_id, accepted_at FROM outbox
WHERE status = 2 AND scrubbed_at IS NULL AND accepted_at > :since
ORDER BY accepted_at DESC LIMIT :limit
