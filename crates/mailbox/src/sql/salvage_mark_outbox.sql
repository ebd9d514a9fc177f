-- Ended rows without their words are like scrubbed ones.
UPDATE outbox SET scrubbed_at = :now
WHERE status IN (2, 4) AND scrubbed_at IS NULL AND payload IS NULL AND seq NOT IN (SELECT seq FROM outbox_payload)
