-- Only the sender's own node can say that it was told, and nothing before it was reached.
UPDATE delivery d SET rung_told = greatest(d.rung_told, least(g.rung, d.rung))
FROM (SELECT u.message, u.recipient, max(u.rung) AS rung
    FROM unnest($2::uuid[], $3::uuid[], $4::smallint[]) AS u (message, recipient, rung)
    GROUP BY u.message, u.recipient) g
JOIN message m ON m.id = g.message
JOIN member r ON r.id = g.recipient
JOIN member s ON s.number = m.sender
WHERE d.message = m.number AND d.recipient = r.number AND d.rung_told IS NOT NULL AND s.home = $1
