-- attempts is counted and first_attempt_at fixed before the first byte: a crash in between must not hide a try.
UPDATE outbox
SET status = 1, lease_token = :lease, lease_until = NULL, attempts = attempts + 1, first_attempt_at = :first_attempt_at
WHERE seq = :seq AND status = 0
