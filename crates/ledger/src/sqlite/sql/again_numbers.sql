SELECT d.message, m.id, d.rung FROM delivery d JOIN message m ON m.number = d.message
WHERE d.recipient = ?1 AND d.again = 1 ORDER BY d.message LIMIT ?2
