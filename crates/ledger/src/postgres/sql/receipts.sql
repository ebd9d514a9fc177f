SELECT m.id, m.client_message_id, r.id, d.rung,
    coalesce(CASE d.rung WHEN 4 THEN d.delivered_at WHEN 5 THEN d.notified_at WHEN 6 THEN d.engaged_at
        WHEN 7 THEN d.processed_at ELSE d.ended_at END, m.ts_us),
    d.ended_code, s.id
FROM member s
CROSS JOIN LATERAL (
    SELECT w.* FROM delivery w
    WHERE w.sender = s.number AND w.rung > w.rung_told
    ORDER BY w.message LIMIT $2) d
JOIN message m ON m.number = d.message
JOIN member r ON r.number = d.recipient
WHERE s.home = $1 AND s.removed_at IS NULL
    -- NOT IN, which is hashed: whatever is on its way would be looked through for every row.
    AND (m.id, r.id) NOT IN (SELECT u.message, u.recipient FROM unnest($3::uuid[], $4::uuid[]) AS u (message, recipient))
ORDER BY m.number, r.number LIMIT $5
