SELECT outbox.seq, aborted_at AS at, coalesce(length(outbox.payload), length(outbox_payload.payload)) AS bytes
FROM outbox INDEXED BY outbox_aborted LEFT JOIN outbox_payload ON outbox_payload.seq = outbox.seq
WHERE status = 4 AND (aborted_at > :at OR aborted_at = :at AND outbox.seq > :after)
ORDER BY aborted_at, outbox.seq LIMIT :limit
