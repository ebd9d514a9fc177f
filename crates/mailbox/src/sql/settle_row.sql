SELECT id, status, lease_token, attempts, first_attempt_at, broker_message_id, superseded_by
FROM outbox
WHERE seq = :seq AND request_fingerprint = :fingerprint AND sender_member_id = :sender AND lane = :lane
