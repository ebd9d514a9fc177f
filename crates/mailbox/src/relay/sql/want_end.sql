UPDATE envelope SET ending = :ending, next_attempt_at = :now, last_error = coalesce(:error, last_error)
WHERE local_seq = :seq AND status = 0
