SELECT n.name, n.last_seen_at,
    (SELECT count(*) FROM member r JOIN mail w ON w.recipient = r.number
        CROSS JOIN LATERAL generate_series(w.first, w.last) AS g
        CROSS JOIN LATERAL (SELECT 1 FROM delivery
            WHERE message = g AND recipient = r.number AND rung = 1 AND stretch = w.first OFFSET 0) d
        WHERE r.home = n.number)
FROM node n WHERE n.removed_at IS NULL ORDER BY n.name LIMIT $1
