-- Ids without their messages: only the planted bug does that.
INSERT INTO dedupe (mesh, sender_member_id, client_message_id, state, request_fingerprint, broker_message_id,
    conversation, history_id, destination_kind, destination_ref, first_seen_at, expires_at, history_available)
SELECT 1, g.sender, g.client_message_id, $11::smallint, g.fingerprint, g.id, g.conversation, g.seq, g.kind, g.ref,
    g.ts, g.until, true
FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[],
    $8::bytea[], $9::smallint[], $10::text[])
    AS g (conversation, seq, id, ts, sender, client_message_id, until, fingerprint, kind, ref)
ORDER BY g.client_message_id, g.sender
