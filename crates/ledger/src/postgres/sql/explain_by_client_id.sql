SELECT d.sender_member_id, d.client_message_id, d.broker_message_id
FROM member s JOIN dedupe d ON d.mesh = 1 AND d.sender_member_id = s.number AND d.client_message_id = $1
ORDER BY d.sender_member_id
