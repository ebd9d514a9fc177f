SELECT seq, sender_member_id, client_message_id, named FROM outbox
WHERE seq > :after ORDER BY seq LIMIT :limit
