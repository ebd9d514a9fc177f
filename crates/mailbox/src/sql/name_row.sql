SELECT sender_member_id, client_message_id, named FROM outbox WHERE seq = ?1
