-- Who may leave is looked for among the first that wait, and among those that are only asked about. When they are not
-- enough, also among the first of every order key: a long line behind one key is not walked through.
WITH RECURSIVE keyed (order_key) AS (
    SELECT min(order_key) FROM envelope WHERE status < 2 AND sorted = 1 AND :every_key
    UNION ALL
    SELECT (SELECT min(order_key) FROM envelope WHERE status < 2 AND sorted = 1 AND order_key > keyed.order_key)
    FROM keyed WHERE keyed.order_key IS NOT NULL),
looked_at (local_seq) AS (
    SELECT * FROM (SELECT local_seq FROM envelope WHERE status = 0 AND sorted = 1 ORDER BY place, local_seq LIMIT :near)
    UNION
    SELECT local_seq FROM envelope INDEXED BY envelope_ending WHERE status = 0 AND ending IS NOT NULL
    UNION
    SELECT (SELECT f.local_seq FROM envelope AS f WHERE f.status < 2 AND f.sorted = 1 AND f.order_key = keyed.order_key
        ORDER BY f.place, f.local_seq LIMIT 1) FROM keyed)
SELECT e.* FROM looked_at CROSS JOIN envelope AS e ON e.local_seq = looked_at.local_seq
WHERE e.status = 0 AND e.next_attempt_at <= :now AND (e.ending IS NOT NULL OR (
    NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status < 2 AND p.sorted = 1 AND p.order_key = e.order_key
        AND (p.place, p.local_seq) < (e.place, e.local_seq))
    AND NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status < 2 AND p.scope = e.scope AND p.barrier = 1
        AND (p.place, p.local_seq) < (e.place, e.local_seq))
    AND (e.barrier = 0 OR NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status < 2 AND p.sorted = 1
        AND p.order_key >= e.scope || ':' AND p.order_key < e.scope || ';'
        AND (p.place, p.local_seq) < (e.place, e.local_seq)))
    AND (e.route_class = 0 OR NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status > 2 AND p.status = 3
        AND p.scope = e.scope AND (p.order_key = e.order_key OR p.barrier = 1 OR e.barrier = 1)
        AND (p.place, p.local_seq) < (e.place, e.local_seq)))))
ORDER BY e.place, e.local_seq LIMIT :limit
