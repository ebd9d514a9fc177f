UPDATE outbox
SET status = 3, dead_reason = :reason, outcome = :outcome, last_error = :error, lease_token = NULL
WHERE seq = :seq AND status = 1 AND lease_token = :lease
