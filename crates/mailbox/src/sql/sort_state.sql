SELECT upto, (SELECT max(seq) FROM outbox) AS last FROM outbox_sorted
