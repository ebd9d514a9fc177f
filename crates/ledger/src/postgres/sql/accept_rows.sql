-- Ids, messages, the new heads of their logs, a row for each subscriber, and the stretches of mail these stand in; direct
-- conversations have no subscribers. A log's are read once, however many messages it gets. Whoever the broker hosts
-- has it at once, unless it is pushed.
-- Ids without ON CONFLICT: one that another transaction committed since it was looked up must undo the batch.
WITH claimed AS (
    INSERT INTO dedupe (mesh, sender_member_id, client_message_id, state, request_fingerprint, broker_message_id,
        conversation, history_id, destination_kind, destination_ref, first_seen_at, expires_at, history_available)
    SELECT 1, g.sender, g.client_message_id, $21::smallint, g.fingerprint, g.id, g.conversation, g.seq, g.kind, g.ref,
        g.ts, g.until, true
    FROM unnest($2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[], $6::bigint[], $7::text[], $10::bigint[],
        $12::bytea[], $13::smallint[], $14::text[])
        AS g (conversation, seq, id, ts, sender, client_message_id, until, fingerprint, kind, ref)
    WHERE $26::boolean
    ORDER BY g.client_message_id, g.sender),
stored AS (
    INSERT INTO message (number, conversation, seq, id, ts_us, sender, client_message_id, envelope, deliver_by,
        dedupe_until)
    OVERRIDING SYSTEM VALUE
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[], $6::bigint[], $7::text[],
        $8::bytea[], $9::bigint[], $10::bigint[])),
advanced AS (
    UPDATE conversation c SET head_seq = g.seq, head_ts_us = g.ts, awaiting_seq = g.awaiting_seq,
        awaiting_by = g.awaiting_by, awaiting_rev = g.awaiting_rev
    FROM unnest($15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[])
        AS g (number, seq, ts, awaiting_seq, awaiting_by, awaiting_rev)
    WHERE c.number = g.number),
audience AS MATERIALIZED (
    SELECT s.conversation, array_agg(s.member) AS members,
        array_agg(r.home IS NULL AND NOT r.pushed) AS hosted, array_agg(r.pushed) AS pushed
    FROM unnest($15::bigint[]) AS g (number)
    JOIN subscription s ON s.conversation = g.number JOIN member r ON r.number = s.member
    GROUP BY s.conversation),
stretched AS (
    INSERT INTO mail (recipient, first, last)
    SELECT s.member, g.first, g.last
    FROM unnest($22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[]) AS g (conversation, first, last, only_sender)
    JOIN audience a ON a.conversation = g.conversation
    CROSS JOIN LATERAL unnest(a.members, a.hosted) AS s (member, hosted)
    WHERE NOT s.hosted AND s.member IS DISTINCT FROM g.only_sender)
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation, stretch)
SELECT m.number, s.member, m.sender, CASE WHEN s.hosted THEN 4 ELSE 1 END, NULL, CASE WHEN s.hosted THEN m.ts_us END,
    CASE WHEN s.pushed THEN m.conversation END, CASE WHEN NOT s.hosted THEN m.stretch END
FROM unnest($1::bigint[], $2::bigint[], $5::bigint[], $6::bigint[], $11::bigint[])
    AS m (number, conversation, ts_us, sender, stretch)
JOIN audience a ON a.conversation = m.conversation
CROSS JOIN LATERAL unnest(a.members, a.hosted, a.pushed) AS s (member, hosted, pushed)
WHERE s.member <> m.sender
