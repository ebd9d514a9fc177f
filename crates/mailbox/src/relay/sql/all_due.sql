UPDATE envelope SET next_attempt_at = :now WHERE status = 0 AND sorted = 1 AND next_attempt_at > :now
