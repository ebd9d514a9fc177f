-- A row whose words are lost can never leave; its id stays used, and a person sees why.
UPDATE outbox
SET status = 3, dead_reason = 7, outcome = CASE WHEN first_attempt_at IS NULL THEN 0 ELSE 1 END,
    lease_token = NULL, lease_until = NULL, last_error = 'its words were lost with a damaged file'
WHERE status < 2 AND sorted = 1 AND payload IS NULL AND seq NOT IN (SELECT seq FROM outbox_payload)
