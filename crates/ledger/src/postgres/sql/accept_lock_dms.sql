SELECT c.topic, c.lo, c.hi, c.number, c.id, c.head_seq, c.head_ts_us, c.state, c.awaiting_seq, c.awaiting_by,
    c.awaiting_rev, c.epoch
FROM unnest($1::bigint[], $2::bigint[]) AS p (lo, hi)
JOIN conversation c ON c.lo = p.lo AND c.hi = p.hi
ORDER BY c.number
FOR NO KEY UPDATE OF c
