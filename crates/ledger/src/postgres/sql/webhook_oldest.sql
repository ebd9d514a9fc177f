SELECT d.message, m.deliver_by
FROM delivery d JOIN message m ON m.number = d.message
WHERE d.recipient = $1 AND d.rung = 1 AND d.push_conversation = $2
ORDER BY d.message LIMIT 1
