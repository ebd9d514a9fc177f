-- What was never tried is due, whatever was done to the clock since.
UPDATE envelope SET sorted = 1, next_attempt_at = min(next_attempt_at, :now)
WHERE local_seq > :after AND local_seq <= :upto AND sorted = 0
