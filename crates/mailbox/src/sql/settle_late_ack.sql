-- An aborted row stays aborted; that it was accepted all the same is noted.
UPDATE outbox
SET late_ack_at = coalesce(late_ack_at, :now), outcome = 3, outcome_settled_at = coalesce(outcome_settled_at, :now),
    broker_message_id = :message, conversation = :conversation, history_id = :history_id, accepted_at = :accepted_at
WHERE seq = :seq AND status = 4
