-- A row that is not done carries the message only by hearsay; the one that is wins.
SELECT seq FROM outbox WHERE broker_message_id = :message ORDER BY status = 2 DESC, seq LIMIT 1
