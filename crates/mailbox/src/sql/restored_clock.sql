-- How far the broker's clock is known to stand behind this host's: a row is accepted after it came.
SELECT min(accepted_at - enqueued_at) FROM (SELECT accepted_at, enqueued_at FROM outbox
    WHERE status = 2 AND scrubbed_at IS NULL ORDER BY accepted_at DESC LIMIT :limit)
