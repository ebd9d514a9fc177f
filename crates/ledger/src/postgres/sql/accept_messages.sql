-- Messages, and a row for each subscriber of their logs; direct conversations have none. Whoever the broker hosts has
-- it at once, unless it is pushed.
WITH stored AS (
    INSERT INTO message (conversation, seq, id, ts_us, sender, client_message_id, envelope, deliver_by, dedupe_until)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::bytea[],
        $8::bigint[], $9::bigint[])
        AS g (conversation, seq, id, ts, sender, client_message_id, envelope, deliver_by, until)
    ORDER BY g.conversation, g.seq
    RETURNING number, conversation, sender, ts_us)
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation)
SELECT m.number, s.member, m.sender, CASE WHEN s.hosted THEN 4 ELSE 1 END, NULL, CASE WHEN s.hosted THEN m.ts_us END,
    CASE WHEN s.pushed THEN m.conversation END
FROM stored m
CROSS JOIN LATERAL (
    SELECT s.member, r.home IS NULL AND NOT r.pushed AS hosted, r.pushed
    FROM subscription s JOIN member r ON r.number = s.member
    WHERE s.conversation = m.conversation AND s.member <> m.sender OFFSET 0) s
