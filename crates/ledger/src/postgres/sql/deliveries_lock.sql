SELECT 1 FROM delivery d
WHERE (d.message, d.recipient) IN (
    SELECT m.number, r.number
    FROM unnest($1::uuid[], $2::uuid[]) AS g (message, recipient)
    JOIN message m ON m.id = g.message
    JOIN member r ON r.id = g.recipient)
ORDER BY d.message, d.recipient
FOR NO KEY UPDATE OF d
