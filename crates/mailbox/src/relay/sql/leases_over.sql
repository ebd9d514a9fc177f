UPDATE envelope SET status = 0, lease_token = NULL, lease_until = NULL, next_attempt_at = :now, outcome = 1
WHERE status = 1 AND lease_until <= :now
