SELECT seq FROM outbox WHERE status = 2 AND scrubbed_at IS NULL AND accepted_at < :before LIMIT :limit
