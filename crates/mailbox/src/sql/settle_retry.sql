UPDATE outbox SET status = 0, last_error = :error, lease_token = NULL
WHERE seq = :seq AND status = 1 AND lease_token = :lease
