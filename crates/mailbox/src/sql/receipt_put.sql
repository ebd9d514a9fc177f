-- Any rung from delivered on takes back an end below it.
UPDATE outbox
SET broker_message_id = :message,
    delivered_at = CASE :rung WHEN 4 THEN :at ELSE delivered_at END,
    notified_at = CASE :rung WHEN 5 THEN :at ELSE notified_at END,
    engaged_at = CASE :rung WHEN 6 THEN :at ELSE engaged_at END,
    processed_at = CASE :rung WHEN 7 THEN :at ELSE processed_at END,
    last_error = CASE WHEN :rung < 4 THEN coalesce(:code, last_error) WHEN ended_as IS NULL THEN last_error END,
    ended_as = CASE WHEN :rung < 4 THEN :rung END
WHERE seq = :seq AND status = :status
