SELECT seq FROM outbox INDEXED BY outbox_name ORDER BY client_message_id
