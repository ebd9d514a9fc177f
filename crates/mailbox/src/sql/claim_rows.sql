-- unasked: the row it replaces may have been accepted, and the broker has not been asked yet.
SELECT seq, id, client_message_id, request_fingerprint, deliver_by, attempts, first_attempt_at, lease_until,
    EXISTS (SELECT 1 FROM outbox AS replaced WHERE replaced.superseded_by = outbox.id
        AND replaced.outcome = 1 AND replaced.outcome_settled_at IS NULL) AS unasked
FROM outbox
WHERE status < 2 AND sorted = 1 AND sender_member_id = :sender AND lane = :lane AND seq > :after
ORDER BY seq LIMIT :limit
