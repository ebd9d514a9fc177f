SELECT k.sender, k.client_message_id, d.state, d.request_fingerprint, d.broker_message_id, c.id, d.history_id,
    d.first_seen_at, d.history_available
FROM unnest($1::uuid[], $2::text[]) AS k (sender, client_message_id)
JOIN member s ON s.id = k.sender
JOIN dedupe d ON d.mesh = 1 AND d.sender_member_id = s.number AND d.client_message_id = k.client_message_id
LEFT JOIN conversation c ON c.number = d.conversation
