UPDATE outbox SET scrubbed_at = :now, payload = NULL
WHERE seq = :seq AND status IN (2, 4) AND scrubbed_at IS NULL
