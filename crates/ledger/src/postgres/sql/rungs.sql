SELECT r.id, d.rung
FROM message m JOIN delivery d ON d.message = m.number JOIN member r ON r.number = d.recipient
WHERE m.id = $1
ORDER BY d.recipient
