-- The broker has it: true from pending, inflight and dead, whoever holds the row.
UPDATE outbox
SET status = 2, lease_token = NULL, lease_until = NULL, dead_reason = NULL, outcome = NULL, outcome_settled_at = NULL,
    late_ack_at = CASE status WHEN 3 THEN :now ELSE late_ack_at END,
    broker_message_id = :message, conversation = :conversation, history_id = :history_id, accepted_at = :accepted_at
WHERE seq = :seq AND status IN (0, 1, 3)
