-- Topics are read by all members, a direct conversation by its two.
SELECT c.id, c.topic, p.name, c.number, c.head_seq, c.epoch, c.floor_seq, c.floor_ts_us, c.floor_id
FROM conversation c
LEFT JOIN member p ON p.number = CASE WHEN c.lo = $2 THEN c.hi ELSE c.lo END
WHERE c.id = $1 AND (c.kind = 0 OR $2 IN (c.lo, c.hi))
