UPDATE outbox SET lease_token = NULL, lease_until = NULL
WHERE seq = :seq AND status IN (0, 3) AND lease_token = :lease
