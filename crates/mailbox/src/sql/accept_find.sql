SELECT id, enqueued_at, request_fingerprint, status, lease_token, broker_message_id, conversation, history_id,
    accepted_at, dead_reason, outcome, last_error, aborted_by, superseded_by
FROM outbox WHERE seq = ?1
