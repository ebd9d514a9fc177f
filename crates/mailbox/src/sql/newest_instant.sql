-- Of the last row of each kind.
SELECT max(coalesce((SELECT received_at FROM inbox WHERE seq = (SELECT max(seq) FROM inbox)), 0),
    coalesce((SELECT enqueued_at FROM outbox WHERE seq = (SELECT max(seq) FROM outbox)), 0))
