-- Rows are never deleted, so the highest seq is their number, and done are those no small index holds. Of those that are
-- not sorted yet, all are open but the few that ended before their turn.
SELECT
    (SELECT coalesce(max(seq), 0) FROM outbox) AS total,
    (SELECT count(*) FROM outbox INDEXED BY outbox_open WHERE status < 2 AND sorted = 1)
        + (SELECT coalesce(max(seq), 0) FROM outbox) - (SELECT upto FROM outbox_sorted)
        - (SELECT count(*) FROM outbox INDEXED BY outbox_passed_by WHERE sorted = 0 AND status <> 0) AS open,
    (SELECT count(*) FROM outbox INDEXED BY outbox_inflight WHERE status = 1) AS inflight,
    (SELECT count(*) FROM outbox INDEXED BY outbox_dead WHERE status = 3) AS dead,
    (SELECT count(*) FROM outbox INDEXED BY outbox_aborted WHERE status = 4) AS aborted,
    (SELECT enqueued_at FROM outbox WHERE seq = coalesce(
        (SELECT min(seq) FROM outbox INDEXED BY outbox_open WHERE status < 2 AND sorted = 1),
        (SELECT seq FROM outbox WHERE seq > (SELECT upto FROM outbox_sorted) AND status = 0 ORDER BY seq LIMIT 1)))
        AS oldest_open_at
