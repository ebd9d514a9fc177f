-- The same words under a second id, not yet on the wire, are not wanted once the first id turned out accepted. While the
-- broker was not asked about the first one, the second has not left, whatever a restore put down as its first attempt.
UPDATE outbox
SET status = 4, aborted_at = :now, aborted_by = 2, outcome = 0, lease_token = NULL, lease_until = NULL
WHERE seq = :seq AND status = 0 AND request_fingerprint = :fingerprint
    AND (first_attempt_at IS NULL OR EXISTS (SELECT 1 FROM outbox AS replaced WHERE replaced.superseded_by = outbox.id
        AND replaced.outcome = 1 AND replaced.outcome_settled_at IS NULL))
