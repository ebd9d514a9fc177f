INSERT INTO dedupe (mesh, sender_member_id, client_message_id, state, request_fingerprint, first_seen_at, expires_at,
    history_available)
VALUES (1, $1, $2, $3, $4, $5, $6, false)
ON CONFLICT DO NOTHING
