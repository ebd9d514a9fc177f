-- An answer to an ack from before the reading does not confirm the reading.
UPDATE inbox SET rung_confirmed = :rung
WHERE broker_message_id = :message AND recipient_member_id = :recipient AND rung_confirmed < :rung
    AND (read_at IS NULL OR :read)
