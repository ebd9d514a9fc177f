SELECT min(next_attempt_at) FROM envelope WHERE status = 0 AND sorted = 1
