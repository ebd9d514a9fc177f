-- The last answer stays while the call is about the same row.
INSERT INTO webhook_call AS c (member, conversation, message, attempts, next_attempt_at, lease_token)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (member, conversation) DO UPDATE SET message = excluded.message, attempts = excluded.attempts,
    next_attempt_at = excluded.next_attempt_at, lease_token = excluded.lease_token,
    last_answer = CASE WHEN c.message = excluded.message THEN c.last_answer END
