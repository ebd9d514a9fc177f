SELECT seq, id, sender_member_id, client_message_id, request_fingerprint, first_attempt_at FROM outbox
WHERE outcome = 1 AND outcome_settled_at IS NULL AND seq > :after ORDER BY seq LIMIT :limit
