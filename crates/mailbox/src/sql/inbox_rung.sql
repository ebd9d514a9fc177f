SELECT seq, broker_message_id, recipient_member_id, rung, rung_at, read_at FROM inbox WHERE seq = :seq
