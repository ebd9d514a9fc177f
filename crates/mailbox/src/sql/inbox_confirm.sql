UPDATE inbox SET rung_confirmed = :rung
WHERE broker_message_id = :message AND recipient_member_id = :recipient AND rung_confirmed < :rung
