-- The first rows of each member at home there, then the first of all. To the recipient a direct conversation is
-- named after its sender; to oneself that is one's own name.
SELECT m.id, r.id, s.id, s.name, m.client_message_id, m.seq, m.ts_us, m.envelope, m.deliver_by, d.read_at, c.epoch,
    c.id, c.topic, s.name, m.number
FROM member r
CROSS JOIN LATERAL (
    SELECT w.message, w.read_at FROM delivery w
    WHERE w.recipient = r.number AND w.rung = 1
    ORDER BY w.message LIMIT $2) d
JOIN message m ON m.number = d.message
JOIN member s ON s.number = m.sender
JOIN conversation c ON c.number = m.conversation
WHERE r.home = $1 AND r.removed_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM unnest($3::uuid[], $4::uuid[]) AS u (message, recipient)
        WHERE u.message = m.id AND u.recipient = r.id)
ORDER BY m.number, r.number LIMIT $5
