-- Topics are read by all members, a direct conversation by its two.
SELECT m.id, m.seq, m.ts_us, s.id, s.name, m.client_message_id, m.envelope, c.epoch, m.number, c.id, c.topic, p.name,
    d.read_at
FROM message m
JOIN conversation c ON c.number = m.conversation
JOIN member s ON s.number = m.sender
LEFT JOIN member p ON p.number = CASE WHEN c.lo = $1 THEN c.hi ELSE c.lo END
LEFT JOIN delivery d ON d.message = m.number AND d.recipient = $1
WHERE m.number < $2 AND m.number >= $3 AND (c.kind = 0 OR $1 IN (c.lo, c.hi))
ORDER BY m.number DESC LIMIT $4
