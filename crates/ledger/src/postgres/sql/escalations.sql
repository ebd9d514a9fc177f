SELECT c.id, c.topic, lo.id, lo.name, hi.id, hi.name, c.awaiting_rev, coalesce(m.ts_us, c.head_ts_us), c.awaiting_seq, q.name, m.id,
    m.envelope
FROM conversation c
JOIN member reader ON reader.id = $1 AND reader.removed_at IS NULL
LEFT JOIN member lo ON lo.number = c.lo
LEFT JOIN member hi ON hi.number = c.hi
LEFT JOIN member q ON q.number = c.awaiting_by
LEFT JOIN message m ON m.conversation = c.number AND m.seq = c.awaiting_seq
WHERE c.awaiting_seq IS NOT NULL AND (c.kind = 0 OR reader.number IN (c.lo, c.hi))
ORDER BY 8, c.number LIMIT $2
