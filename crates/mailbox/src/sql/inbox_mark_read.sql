-- Not confirmed any more: the next ack tells the broker what is new.
UPDATE inbox SET read_at = :now, rung_confirmed = 0
WHERE broker_message_id = :message AND recipient_member_id = :recipient AND read_at IS NULL
