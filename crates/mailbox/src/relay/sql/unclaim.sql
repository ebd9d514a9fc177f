UPDATE envelope SET status = 0, lease_token = NULL, lease_until = NULL, attempts = :attempts, outcome = :outcome,
    first_attempt_at = :first_attempt_at, sent_precondition = :sent_precondition
WHERE local_seq = :seq AND status = 1 AND lease_token = :lease
