SELECT seq FROM outbox WHERE status = 4 AND scrubbed_at IS NULL AND aborted_at < :before LIMIT :limit
