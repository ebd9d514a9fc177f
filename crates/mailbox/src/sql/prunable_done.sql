-- The byte counts leave the bodies themselves unread.
SELECT outbox.seq, accepted_at AS at, coalesce(length(outbox.payload), length(outbox_payload.payload)) AS bytes
FROM outbox INDEXED BY outbox_done LEFT JOIN outbox_payload ON outbox_payload.seq = outbox.seq
WHERE status = 2 AND scrubbed_at IS NULL AND (accepted_at > :at OR accepted_at = :at AND outbox.seq > :after)
ORDER BY accepted_at, outbox.seq LIMIT :limit
