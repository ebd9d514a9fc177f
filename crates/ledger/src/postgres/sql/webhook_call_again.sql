UPDATE webhook_call SET lease_token = NULL, next_attempt_at = $4, last_answer = $5
WHERE member = $1 AND message = $2 AND lease_token = $3
