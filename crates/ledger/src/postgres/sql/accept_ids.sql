-- Without ON CONFLICT: an id that another transaction committed since it was looked up must undo the batch.
INSERT INTO dedupe (mesh, sender_member_id, client_message_id, state, request_fingerprint, broker_message_id,
    conversation, history_id, destination_kind, destination_ref, first_seen_at, expires_at, history_available)
SELECT 1, g.sender, g.client_message_id, $3::smallint, g.fingerprint, g.id, g.conversation, g.seq, g.kind, g.ref,
    g.ts, g.until, true
FROM unnest($1::bigint[], $2::text[], $4::bytea[], $5::uuid[], $6::bigint[], $7::bigint[], $8::smallint[], $9::text[],
    $10::bigint[], $11::bigint[])
    AS g (sender, client_message_id, fingerprint, id, conversation, seq, kind, ref, ts, until)
ORDER BY g.client_message_id, g.sender
