-- Stretches in which nothing waits any more.
DELETE FROM mail w USING unnest($1::bigint[], $2::bigint[]) AS g (recipient, first)
WHERE w.recipient = g.recipient AND w.first = g.first
    AND NOT EXISTS (SELECT 1 FROM generate_series(w.first, w.last) AS n
        CROSS JOIN LATERAL (SELECT 1 FROM delivery
            WHERE message = n AND recipient = w.recipient AND rung = 1 AND stretch = w.first OFFSET 0) d)
