SELECT count(*) FROM envelope AS e WHERE e.status = 0 AND e.route_class = 1 AND EXISTS (SELECT 1 FROM envelope AS p
    WHERE p.status > 2 AND p.status = 3 AND p.scope = e.scope
    AND (p.order_key = e.order_key OR p.barrier = 1 OR e.barrier = 1)
    AND (p.place, p.local_seq) < (e.place, e.local_seq))
