SELECT 1 FROM outbox WHERE seq = ?1 AND sender_member_id = ?2 AND client_message_id = ?3
