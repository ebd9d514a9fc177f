SELECT seq, sender_member_id, client_message_id FROM outbox
WHERE named = 1 AND seq > :after ORDER BY seq LIMIT :limit
