SELECT c.id, c.topic, p.name, c.kind, iif(c.state = 0, 2 * c.paused, c.state), c.head_seq, c.head_ts_us, c.awaiting_seq, a.id, c.awaiting_rev,
    ifnull(r.seq, 0),
    (SELECT count(*) FROM (SELECT 1 FROM message m
        WHERE m.conversation = c.number AND m.seq > ifnull(r.seq, 0) AND m.sender <> reader.number LIMIT ?3))
FROM member reader
JOIN conversation c ON c.id = ?2 AND (c.kind = 0 OR reader.number IN (c.lo, c.hi))
LEFT JOIN member p ON p.number = iif(c.lo = reader.number, c.hi, c.lo)
LEFT JOIN member a ON a.number = c.awaiting_by
LEFT JOIN read_mark r ON r.member = reader.number AND r.conversation = c.number
WHERE reader.id = ?1 AND reader.removed_at IS NULL
