-- Numbers rise with time, so each recipient's oldest rows come first. A removed member gets no mail any more.
UPDATE delivery d SET rung = CASE WHEN due.removed THEN $6::smallint ELSE $4::smallint END, ended_at = $3,
    ended_code = CASE WHEN due.removed THEN $7::text ELSE $5::text END
FROM (
    SELECT w.message, w.recipient, r.removed_at IS NOT NULL AS removed
    FROM member r
    CROSS JOIN LATERAL (
        SELECT x.message, x.recipient FROM delivery x
        WHERE x.recipient = r.number AND x.rung = 1
        ORDER BY x.message LIMIT $2) w
    JOIN message m ON m.number = w.message
    WHERE r.removed_at IS NOT NULL OR m.ts_us < $1
    ORDER BY w.message, w.recipient LIMIT $2) due
WHERE d.message = due.message AND d.recipient = due.recipient AND d.rung = 1
