SELECT c.topic, c.lo, c.hi, c.number, c.id, c.head_seq, c.head_ts_us, c.state, c.awaiting_seq, c.awaiting_by,
    c.awaiting_rev
FROM conversation c
WHERE c.number IN (
    SELECT t.number FROM conversation t WHERE t.topic = ANY ($1::text[])
    UNION ALL
    SELECT d.number FROM unnest($2::bigint[], $3::bigint[]) AS p (lo, hi)
    JOIN conversation d ON d.lo = p.lo AND d.hi = p.hi)
ORDER BY c.number
FOR NO KEY UPDATE OF c
