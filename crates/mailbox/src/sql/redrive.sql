-- A row whose words an operator gave up has none to send again.
-- The one way back from done, and the one time first_attempt_at moves. The backup may have kept the row: its id is
-- known there for a window from accepted_at on, so its age counts from there (model::outbox::redrive).
UPDATE outbox
SET status = 0, first_attempt_at = accepted_at, broker_message_id = NULL, conversation = NULL, history_id = NULL,
    accepted_at = NULL, delivered_at = NULL, notified_at = NULL, engaged_at = NULL, processed_at = NULL, ended_as = NULL
WHERE seq IN (SELECT seq FROM outbox
    WHERE status = 2 AND scrubbed_at IS NULL AND accepted_at > :since AND (deliver_by IS NULL OR deliver_by > :broker_now)
        AND (payload IS NOT NULL OR seq IN (SELECT seq FROM outbox_payload))
    ORDER BY accepted_at DESC LIMIT :limit)
