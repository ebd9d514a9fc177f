SELECT seq FROM outbox WHERE id = ?1 AND sender_member_id = ?2 AND client_message_id = ?3
