-- Rows are never deleted, so the highest seq is their number, and done are those no small index holds.
SELECT
    (SELECT coalesce(max(seq), 0) FROM outbox) AS total,
    (SELECT count(*) FROM outbox INDEXED BY outbox_open WHERE status < 2) AS open,
    (SELECT count(*) FROM outbox INDEXED BY outbox_inflight WHERE status = 1) AS inflight,
    (SELECT count(*) FROM outbox INDEXED BY outbox_dead WHERE status = 3) AS dead,
    (SELECT count(*) FROM outbox INDEXED BY outbox_aborted WHERE status = 4) AS aborted,
    (SELECT enqueued_at FROM outbox WHERE seq =
        (SELECT min(seq) FROM outbox INDEXED BY outbox_open WHERE status < 2)) AS oldest_open_at
