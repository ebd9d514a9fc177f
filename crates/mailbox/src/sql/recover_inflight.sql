UPDATE outbox SET status = 0, lease_token = NULL WHERE status = 1
