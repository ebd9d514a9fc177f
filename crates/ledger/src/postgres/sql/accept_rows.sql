-- Ids, messages, the new heads of their logs, and a row for each subscriber; direct conversations have none. A log's
-- subscribers are read once, however many messages it gets. Whoever the broker hosts has it at once, unless it is pushed.
-- Ids without ON CONFLICT: one that another transaction committed since it was looked up must undo the batch.
WITH claimed AS (
    INSERT INTO dedupe (mesh, sender_member_id, client_message_id, state, request_fingerprint, broker_message_id,
        conversation, history_id, destination_kind, destination_ref, first_seen_at, expires_at, history_available)
    SELECT 1, g.sender, g.client_message_id, $16::smallint, g.fingerprint, g.id, g.conversation, g.seq, g.kind, g.ref,
        g.ts, g.until, true
    FROM unnest($17::bigint[], $18::text[], $19::bytea[], $20::uuid[], $21::bigint[], $22::bigint[], $23::smallint[],
        $24::text[], $25::bigint[], $26::bigint[])
        AS g (sender, client_message_id, fingerprint, id, conversation, seq, kind, ref, ts, until)
    ORDER BY g.client_message_id, g.sender),
stored AS (
    INSERT INTO message (conversation, seq, id, ts_us, sender, client_message_id, envelope, deliver_by, dedupe_until)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::bytea[],
        $8::bigint[], $9::bigint[])
        AS g (conversation, seq, id, ts, sender, client_message_id, envelope, deliver_by, until)
    ORDER BY g.conversation, g.seq
    RETURNING number, conversation, sender, ts_us),
advanced AS (
    UPDATE conversation c SET head_seq = g.seq, head_ts_us = g.ts, awaiting_seq = g.awaiting_seq,
        awaiting_by = g.awaiting_by, awaiting_rev = g.awaiting_rev
    FROM unnest($10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
        AS g (number, seq, ts, awaiting_seq, awaiting_by, awaiting_rev)
    WHERE c.number = g.number),
audience AS MATERIALIZED (
    SELECT s.conversation, array_agg(s.member) AS members,
        array_agg(r.home IS NULL AND NOT r.pushed) AS hosted, array_agg(r.pushed) AS pushed
    FROM unnest($10::bigint[]) AS g (number)
    JOIN subscription s ON s.conversation = g.number JOIN member r ON r.number = s.member
    GROUP BY s.conversation)
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation)
SELECT m.number, s.member, m.sender, CASE WHEN s.hosted THEN 4 ELSE 1 END, NULL, CASE WHEN s.hosted THEN m.ts_us END,
    CASE WHEN s.pushed THEN m.conversation END
FROM stored m JOIN audience a ON a.conversation = m.conversation
CROSS JOIN LATERAL unnest(a.members, a.hosted, a.pushed) AS s (member, hosted, pushed)
WHERE s.member <> m.sender
