-- A later copy may have taken the id after its window; that row is another message's.
UPDATE dedupe SET history_available = 0
FROM message m
WHERE m.number = ?1 AND dedupe.mesh = 1 AND dedupe.sender_member_id = m.sender
    AND dedupe.client_message_id = m.client_message_id AND dedupe.broker_message_id = m.id
