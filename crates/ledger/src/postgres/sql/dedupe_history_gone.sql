-- A later copy may have taken the id after its window; that row is another message's.
UPDATE dedupe d SET history_available = false
FROM message m
WHERE m.number = ANY ($1::bigint[]) AND d.mesh = 1 AND d.sender_member_id = m.sender
    AND d.client_message_id = m.client_message_id AND d.broker_message_id = m.id
