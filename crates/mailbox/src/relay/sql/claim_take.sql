UPDATE envelope SET status = 1, lease_token = :lease, lease_until = :until, attempts = attempts + :counted,
    outcome = :outcome, first_attempt_at = coalesce(first_attempt_at, :first), sent_precondition = :sent_precondition
WHERE local_seq = :seq AND status = 0
