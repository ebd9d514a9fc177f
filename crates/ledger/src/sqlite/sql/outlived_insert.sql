-- While its message is kept, an id stays a way to it.
INSERT INTO outlived (client_message_id, message)
SELECT d.client_message_id, m.number FROM dedupe d JOIN message m ON m.id = d.broker_message_id
WHERE d.mesh = 1 AND d.sender_member_id = ?1 AND d.client_message_id = ?2 AND d.expires_at <= ?3
