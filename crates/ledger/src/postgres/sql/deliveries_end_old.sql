-- Numbers rise with time, so each recipient's oldest rows come first. A removed member gets no mail any more.
UPDATE delivery d SET rung = CASE WHEN due.removed THEN $6::smallint ELSE $4::smallint END, ended_at = $3,
    ended_code = CASE WHEN due.removed THEN $7::text ELSE $5::text END
FROM (
    SELECT w.message, w.recipient, r.removed_at IS NOT NULL AS removed
    FROM member r
    CROSS JOIN LATERAL (
        SELECT x.message, x.recipient
        FROM (SELECT first, last FROM mail WHERE recipient = r.number ORDER BY first) s
        CROSS JOIN LATERAL generate_series(s.first, s.last) AS n
        CROSS JOIN LATERAL (SELECT message, recipient FROM delivery
            WHERE message = n AND recipient = r.number AND rung = 1 AND stretch = s.first OFFSET 0) x
        LIMIT $2) w
    CROSS JOIN LATERAL (SELECT ts_us FROM message WHERE number = w.message OFFSET 0) m
    WHERE r.removed_at IS NOT NULL OR m.ts_us < $1
    ORDER BY w.message, w.recipient LIMIT $2) due
WHERE d.message = due.message AND d.recipient = due.recipient AND d.rung = 1
RETURNING d.recipient, d.stretch
