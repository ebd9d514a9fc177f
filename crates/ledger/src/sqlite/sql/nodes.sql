SELECT n.name, n.last_seen_at,
    (SELECT count(*) FROM member r CROSS JOIN mail w CROSS JOIN message m CROSS JOIN delivery d
        WHERE r.home = n.number AND w.recipient = r.number AND m.number BETWEEN w.first AND w.last
            AND d.message = m.number AND d.recipient = r.number AND d.rung = 1)
FROM node n WHERE n.removed_at IS NULL ORDER BY n.name LIMIT ?1
