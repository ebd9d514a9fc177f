-- The same words under a second id, not yet on the wire, are not wanted once the first id turned out accepted.
UPDATE outbox
SET status = 4, aborted_at = :now, aborted_by = 2, outcome = 0, lease_token = NULL, lease_until = NULL
WHERE seq = :seq AND status = 0 AND first_attempt_at IS NULL AND request_fingerprint = :fingerprint
