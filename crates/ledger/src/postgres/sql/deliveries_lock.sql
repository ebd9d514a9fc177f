SELECT 1
FROM unnest($1::uuid[], $2::uuid[]) AS g (message, recipient)
JOIN message m ON m.id = g.message
JOIN member r ON r.id = g.recipient
JOIN delivery d ON d.message = m.number AND d.recipient = r.number
ORDER BY d.message, d.recipient
FOR NO KEY UPDATE OF d
