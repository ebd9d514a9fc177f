SELECT n.name, n.last_seen_at,
    (SELECT count(*) FROM member m JOIN delivery d ON d.recipient = m.number AND d.rung = 1 WHERE m.home = n.number)
FROM node n WHERE n.removed_at IS NULL ORDER BY n.name LIMIT ?1
