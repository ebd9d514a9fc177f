-- A mentioned subscriber has a row already. Each of the others waits in a stretch of its own.
WITH told AS (
    INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation, stretch)
    SELECT g.message, g.recipient, g.sender, CASE WHEN r.hosted THEN 4 ELSE 1 END, g.rung_told,
        CASE WHEN r.hosted THEN g.ts END, CASE WHEN r.pushed THEN g.conversation END,
        CASE WHEN NOT r.hosted THEN g.message END
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::smallint[])
        AS g (message, conversation, ts, sender, recipient, rung_told)
    CROSS JOIN LATERAL (
        SELECT home IS NULL AND NOT pushed AS hosted, pushed FROM member WHERE number = g.recipient OFFSET 0) r
    ORDER BY g.message, g.recipient
    ON CONFLICT DO NOTHING
    RETURNING recipient, stretch)
INSERT INTO mail (recipient, first, last)
SELECT recipient, stretch, stretch FROM told WHERE stretch IS NOT NULL
