SELECT d.message, m.id, m.client_message_id, r.id, d.rung,
    coalesce(CASE d.rung WHEN 4 THEN d.delivered_at WHEN 5 THEN d.notified_at WHEN 6 THEN d.engaged_at
        WHEN 7 THEN d.processed_at ELSE d.ended_at END, m.ts_us),
    d.ended_code
FROM delivery d
JOIN message m ON m.number = d.message
JOIN member r ON r.number = d.recipient
WHERE d.sender = ?1 AND d.rung > d.rung_told
ORDER BY d.message LIMIT ?2
