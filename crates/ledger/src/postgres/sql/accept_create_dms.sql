INSERT INTO conversation (id, kind, lo, hi, created_at)
SELECT g.id, 1, g.lo, g.hi, $4 FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS g (id, lo, hi)
WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.lo = g.lo AND c.hi = g.hi)
ORDER BY g.lo, g.hi
ON CONFLICT DO NOTHING
