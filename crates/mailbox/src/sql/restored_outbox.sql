-- What had not left when the backup was made may have left since.
UPDATE outbox SET first_attempt_at = :at
WHERE status = 0 AND first_attempt_at IS NULL AND seq IN (
    SELECT seq FROM outbox WHERE status < 2 AND sorted = 1
    UNION ALL SELECT seq FROM outbox WHERE seq > (SELECT upto FROM outbox_sorted))
