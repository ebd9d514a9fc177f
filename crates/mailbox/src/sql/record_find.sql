SELECT seq, rung, rung_at, read_at, broker_message_id FROM inbox
WHERE sender_member_id = :sender AND client_message_id = :client_message_id AND recipient_member_id = :recipient
