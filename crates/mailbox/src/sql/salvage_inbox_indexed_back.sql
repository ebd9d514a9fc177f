SELECT seq FROM inbox INDEXED BY inbox_message ORDER BY broker_message_id DESC, recipient_member_id DESC
