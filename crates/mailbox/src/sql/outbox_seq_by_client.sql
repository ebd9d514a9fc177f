SELECT seq FROM outbox WHERE sender_member_id = :sender AND client_message_id = :client_message_id
