SELECT seq, id, status, outcome, broker_message_id, delivered_at, notified_at, engaged_at, processed_at, ended_as
FROM outbox WHERE seq = :seq
