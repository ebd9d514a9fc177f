SELECT c.id, c.topic, p.name, c.kind, c.state, c.head_seq, c.head_ts_us, c.awaiting_seq, a.id, c.awaiting_rev
FROM member reader
JOIN conversation c ON c.id = $2 AND (c.kind = 0 OR reader.number IN (c.lo, c.hi))
LEFT JOIN member p ON p.number = CASE WHEN c.lo = reader.number THEN c.hi ELSE c.lo END
LEFT JOIN member a ON a.number = c.awaiting_by
WHERE reader.id = $1 AND reader.removed_at IS NULL
