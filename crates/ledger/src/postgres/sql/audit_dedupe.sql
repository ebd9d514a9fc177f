SELECT d.broker_message_id
FROM dedupe d LEFT JOIN message m ON m.id = d.broker_message_id
WHERE d.state = 0 AND d.history_available AND d.first_seen_at < $1 AND m.number IS NULL
ORDER BY d.client_message_id, d.sender_member_id LIMIT $2
