SELECT 1
FROM mail w JOIN (SELECT DISTINCT u.recipient, u.first FROM unnest($1::bigint[], $2::bigint[]) AS u (recipient, first)) g
    ON w.recipient = g.recipient AND w.first = g.first
ORDER BY w.recipient, w.first
FOR UPDATE OF w
