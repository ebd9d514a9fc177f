UPDATE outbox SET status = 0, attempts = attempts - 1, lease_token = NULL
WHERE seq = :seq AND status = 1 AND lease_token = :lease
