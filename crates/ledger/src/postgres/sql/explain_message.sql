SELECT m.number, m.seq, m.ts_us, m.deliver_by, c.id, c.topic, p.name
FROM message m
JOIN conversation c ON c.number = m.conversation
LEFT JOIN member p ON p.number = CASE WHEN c.lo = m.sender THEN c.hi ELSE c.lo END
WHERE m.id = $1
