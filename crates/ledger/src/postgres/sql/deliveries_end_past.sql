UPDATE delivery d SET rung = $4, ended_at = $2, ended_code = $5
FROM (
    SELECT w.message, w.recipient
    FROM message m JOIN delivery w ON w.message = m.number AND w.rung = 1
    WHERE m.deliver_by > $1 AND m.deliver_by <= $2
    ORDER BY w.message, w.recipient LIMIT $3
    FOR NO KEY UPDATE OF w SKIP LOCKED) due
WHERE d.message = due.message AND d.recipient = due.recipient AND d.rung = 1
RETURNING d.recipient, d.stretch
