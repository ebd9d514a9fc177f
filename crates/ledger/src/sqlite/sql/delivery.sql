SELECT d.message, d.recipient, d.sender, d.rung
FROM message m
JOIN member r ON r.id = ?2
JOIN delivery d ON d.message = m.number AND d.recipient = r.number
WHERE m.id = ?1
