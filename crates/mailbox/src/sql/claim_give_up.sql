UPDATE outbox
SET status = 3, dead_reason = :reason, outcome = :outcome, lease_token = NULL, lease_until = NULL,
    last_error = :why || coalesce(': ' || last_error, '')
WHERE seq = :seq AND status = 0
