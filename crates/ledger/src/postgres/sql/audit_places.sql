SELECT d.broker_message_id
FROM dedupe d JOIN message m ON m.id = d.broker_message_id
WHERE d.state = 0 AND (d.conversation IS DISTINCT FROM m.conversation OR d.history_id IS DISTINCT FROM m.seq)
ORDER BY d.client_message_id, d.sender_member_id LIMIT $1
