-- A mentioned subscriber has a row already.
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation)
SELECT m.number, g.recipient, m.sender, CASE WHEN r.home IS NULL AND NOT r.pushed THEN 4 ELSE 1 END, g.rung_told,
    CASE WHEN r.home IS NULL AND NOT r.pushed THEN m.ts_us END, CASE WHEN r.pushed THEN m.conversation END
FROM unnest($1::uuid[], $2::bigint[], $3::smallint[]) AS g (id, recipient, rung_told)
CROSS JOIN LATERAL (SELECT number, conversation, sender, ts_us FROM message WHERE id = g.id OFFSET 0) m
CROSS JOIN LATERAL (SELECT home, pushed FROM member WHERE number = g.recipient OFFSET 0) r
ORDER BY m.number, g.recipient
ON CONFLICT DO NOTHING
