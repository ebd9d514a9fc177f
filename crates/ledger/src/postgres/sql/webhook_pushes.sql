SELECT r.name, d.rung, c.attempts, c.next_attempt_at, c.last_answer
FROM message m
JOIN delivery d ON d.message = m.number AND d.push_conversation IS NOT NULL
JOIN member r ON r.number = d.recipient
LEFT JOIN webhook_call c ON c.member = d.recipient AND c.conversation = d.push_conversation AND c.message = d.message
WHERE m.id = $1
ORDER BY r.name
