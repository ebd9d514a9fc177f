-- Topics, and direct conversations from either end; one's own has both ends and counts once.
SELECT c.id, c.topic, p.name, c.kind, c.state, c.head_seq, c.head_ts_us, c.awaiting_seq, a.id, c.awaiting_rev
FROM member reader
JOIN conversation c ON c.number IN (
    SELECT number FROM conversation WHERE topic IS NOT NULL
    UNION ALL SELECT number FROM conversation WHERE lo = reader.number
    UNION ALL SELECT number FROM conversation WHERE hi = reader.number)
LEFT JOIN member p ON p.number = iif(c.lo = reader.number, c.hi, c.lo)
LEFT JOIN member a ON a.number = c.awaiting_by
WHERE reader.id = ?1 AND reader.removed_at IS NULL
ORDER BY c.head_ts_us DESC, c.number DESC LIMIT ?2
