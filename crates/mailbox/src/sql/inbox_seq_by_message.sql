SELECT seq FROM inbox WHERE broker_message_id = :message ORDER BY recipient_member_id
