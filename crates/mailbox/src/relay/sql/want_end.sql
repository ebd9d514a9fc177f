UPDATE envelope SET ending = :ending, next_attempt_at = :now WHERE local_seq = :seq AND status = 0
