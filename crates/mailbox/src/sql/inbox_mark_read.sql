UPDATE inbox SET read_at = :now
WHERE broker_message_id = :message AND recipient_member_id = :recipient AND read_at IS NULL
