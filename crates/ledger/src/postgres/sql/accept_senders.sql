-- Who asks, and what is known of each id. OFFSET 0 keeps every look-up at its key: a plan made while the tables were empty
-- would rather walk all of dedupe.
SELECT k.sender, k.client_message_id, s.number, s.home, s.removed_at, d.state, d.request_fingerprint,
    d.broker_message_id, c.id, d.history_id, d.first_seen_at, d.history_available
FROM unnest($1::uuid[], $2::text[]) AS k (sender, client_message_id)
CROSS JOIN LATERAL (SELECT number, home, removed_at FROM member WHERE id = k.sender OFFSET 0) s
LEFT JOIN LATERAL (SELECT * FROM dedupe WHERE mesh = 1 AND sender_member_id = s.number
    AND client_message_id = k.client_message_id OFFSET 0) d ON true
LEFT JOIN conversation c ON c.number = d.conversation
