INSERT INTO dedupe (mesh, sender_member_id, client_message_id, state, request_fingerprint, broker_message_id,
    conversation, history_id, destination_kind, destination_ref, first_seen_at, expires_at, history_available)
VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1)
