-- Their index has no instant: a walk through it goes by places alone.
SELECT outbox.seq, 0 AS at, coalesce(length(outbox.payload), length(outbox_payload.payload)) AS bytes
FROM outbox INDEXED BY outbox_dead LEFT JOIN outbox_payload ON outbox_payload.seq = outbox.seq
WHERE status = 3 AND outbox.seq > :after AND :at <= 0
ORDER BY outbox.seq LIMIT :limit
