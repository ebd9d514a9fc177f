SELECT d.state, d.request_fingerprint, d.broker_message_id, c.id, d.history_id, d.first_seen_at, d.history_available,
    k.place
FROM unnest($2::text[]) WITH ORDINALITY AS k (client_message_id, place)
JOIN member s ON s.id = $1
JOIN dedupe d ON d.mesh = 1 AND d.sender_member_id = s.number AND d.client_message_id = k.client_message_id
LEFT JOIN conversation c ON c.number = d.conversation
