SELECT 1
FROM unnest($1::bigint[], $2::bigint[]) AS g (recipient, first)
JOIN mail w ON w.recipient = g.recipient AND w.first = g.first
ORDER BY w.recipient, w.first
FOR UPDATE OF w
