SELECT d.state, d.request_fingerprint, d.broker_message_id, c.id, d.history_id, d.first_seen_at, d.history_available,
    d.expires_at
FROM dedupe d LEFT JOIN conversation c ON c.number = d.conversation
WHERE d.mesh = 1 AND d.sender_member_id = $1 AND d.client_message_id = $2
