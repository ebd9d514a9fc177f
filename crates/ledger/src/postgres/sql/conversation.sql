SELECT c.id, c.topic, p.name, c.kind, CASE WHEN c.state = 0 AND c.paused THEN 2::smallint ELSE c.state END, c.head_seq, c.head_ts_us,
    c.awaiting_seq, a.id, c.awaiting_rev, coalesce(r.seq, 0),
    (SELECT count(*) FROM (SELECT 1 FROM message m
        WHERE m.conversation = c.number AND m.seq > coalesce(r.seq, 0) AND m.sender <> reader.number LIMIT $3) unread)
FROM member reader
JOIN conversation c ON c.id = $2 AND (c.kind = 0 OR reader.number IN (c.lo, c.hi))
LEFT JOIN member p ON p.number = CASE WHEN c.lo = reader.number THEN c.hi ELSE c.lo END
LEFT JOIN member a ON a.number = c.awaiting_by
LEFT JOIN read_mark r ON r.member = reader.number AND r.conversation = c.number
WHERE reader.id = $1 AND reader.removed_at IS NULL
