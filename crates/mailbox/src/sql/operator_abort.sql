UPDATE outbox
SET status = 4, aborted_at = :now, aborted_by = :by, superseded_by = :successor, dead_reason = NULL,
    outcome = :outcome, outcome_settled_at = coalesce(outcome_settled_at, :settled_at),
    lease_token = NULL, lease_until = NULL
WHERE seq = :seq AND status = :status
