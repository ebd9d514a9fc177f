-- Rungs belong to one message of the broker; another id starts from the bottom.
UPDATE outbox
SET delivered_at = NULL, notified_at = NULL, engaged_at = NULL, processed_at = NULL, ended_as = NULL
WHERE seq = :seq
