SELECT d.message, m.ts_us
FROM delivery d JOIN message m ON m.number = d.message
WHERE d.recipient = ?1 AND d.rung = 1
ORDER BY d.message LIMIT ?2
