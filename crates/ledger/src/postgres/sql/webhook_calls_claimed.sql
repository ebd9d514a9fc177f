SELECT count(*) FROM webhook_call WHERE member = $1 AND lease_token IS NOT NULL AND next_attempt_at > $2
