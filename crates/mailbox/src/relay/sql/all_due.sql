UPDATE envelope SET next_attempt_at = :now WHERE status = 0 AND next_attempt_at > :now
