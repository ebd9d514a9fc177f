SELECT * FROM envelope AS e
WHERE e.status = 0 AND e.next_attempt_at <= :now AND (e.ending IS NOT NULL OR (
    NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status < 2 AND p.order_key = e.order_key
        AND (p.place, p.local_seq) < (e.place, e.local_seq))
    AND NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status < 2 AND p.scope = e.scope AND p.barrier = 1
        AND (p.place, p.local_seq) < (e.place, e.local_seq))
    AND (e.barrier = 0 OR NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status < 2
        AND p.order_key >= e.scope || ':' AND p.order_key < e.scope || ';'
        AND (p.place, p.local_seq) < (e.place, e.local_seq)))
    AND (e.route_class = 0 OR NOT EXISTS (SELECT 1 FROM envelope AS p WHERE p.status > 2 AND p.status = 3
        AND p.scope = e.scope AND (p.order_key = e.order_key OR p.barrier = 1 OR e.barrier = 1)
        AND (p.place, p.local_seq) < (e.place, e.local_seq)))))
ORDER BY e.place, e.local_seq LIMIT :limit
