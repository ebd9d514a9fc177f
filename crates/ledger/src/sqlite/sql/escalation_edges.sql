SELECT c.id, c.topic, lo.id, lo.name, hi.id, hi.name, e.rev, e.at, e.seq, q.name, m.id, m.envelope
FROM escalation e
JOIN conversation c ON c.number = e.conversation
LEFT JOIN member lo ON lo.number = c.lo
LEFT JOIN member hi ON hi.number = c.hi
LEFT JOIN member q ON q.number = e.asked_by
LEFT JOIN message m ON m.conversation = e.conversation AND m.seq = e.seq
WHERE e.at >= ?1
ORDER BY e.at, e.conversation, e.rev LIMIT ?2
