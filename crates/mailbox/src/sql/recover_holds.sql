UPDATE outbox SET lease_token = NULL, lease_until = NULL WHERE lease_until IS NOT NULL
