SELECT d.message, d.recipient
FROM message m JOIN delivery d ON d.message = m.number AND d.rung = 1
WHERE m.deliver_by > ?1 AND m.deliver_by <= ?2
ORDER BY m.deliver_by LIMIT ?3
