SELECT
    (SELECT count(*) FROM envelope AS p WHERE p.status < 2 AND p.scope = e.scope
        AND (p.order_key = e.order_key OR p.barrier = 1 OR e.barrier = 1)
        AND (p.place, p.local_seq) < (e.place, e.local_seq)) AS older,
    (SELECT count(*) FROM envelope AS p WHERE p.status > 2 AND p.status = 3 AND e.route_class = 1
        AND p.scope = e.scope AND (p.order_key = e.order_key OR p.barrier = 1 OR e.barrier = 1)
        AND (p.place, p.local_seq) < (e.place, e.local_seq)) AS conflicts
FROM envelope AS e WHERE e.local_seq = :seq
