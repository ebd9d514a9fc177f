-- What an inbox that went back may lack, oldest first. To the recipient a direct conversation is named after its sender;
-- to oneself that is one's own name.
SELECT m.id, r.id, s.id, s.name, m.client_message_id, m.seq, m.ts_us, m.envelope, m.deliver_by, d.read_at, c.epoch,
    c.id, c.topic, s.name, m.number, d.rung
FROM member r
JOIN delivery d ON d.recipient = r.number AND d.again = 1
JOIN message m ON m.number = d.message
JOIN member s ON s.number = m.sender
JOIN conversation c ON c.number = m.conversation
WHERE r.home = $1 AND r.removed_at IS NULL
    AND (m.id, r.id) NOT IN (SELECT u.message, u.recipient FROM unnest($2::uuid[], $3::uuid[]) AS u (message, recipient))
ORDER BY m.number, r.number LIMIT $4
