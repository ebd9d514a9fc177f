-- The first rows of each member at home there, then the first of all. To the recipient a direct conversation is
-- named after its sender; to oneself that is one's own name.
-- A member's rows come in the order of its stretches, and each log's in the order of its seq: what is joined LATERAL
-- is walked in that order, and no further than the limit.
SELECT m.id, r.id, s.id, s.name, m.client_message_id, m.seq, m.ts_us, m.envelope, m.deliver_by, d.read_at, c.epoch,
    c.id, c.topic, s.name, m.number
FROM member r
CROSS JOIN LATERAL (
    SELECT x.message, x.read_at
    FROM (SELECT first, last FROM mail WHERE recipient = r.number ORDER BY first) w
    CROSS JOIN LATERAL generate_series(w.first, w.last) AS n
    CROSS JOIN LATERAL (SELECT message, read_at FROM delivery
        WHERE message = n AND recipient = r.number AND rung = 1 AND stretch = w.first OFFSET 0) x
    LIMIT $2) d
CROSS JOIN LATERAL (SELECT * FROM message WHERE number = d.message OFFSET 0) m
JOIN member s ON s.number = m.sender
JOIN conversation c ON c.number = m.conversation
WHERE r.home = $1 AND r.removed_at IS NULL
    -- NOT IN, which is hashed: whatever is on its way would be looked through for every row.
    AND (m.id, r.id) NOT IN (SELECT u.message, u.recipient FROM unnest($3::uuid[], $4::uuid[]) AS u (message, recipient))
ORDER BY m.number, r.number LIMIT $5
