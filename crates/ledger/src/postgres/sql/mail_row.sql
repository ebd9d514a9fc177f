SELECT m.id, r.id, s.id, s.name, m.client_message_id, m.seq, m.ts_us, m.envelope, m.deliver_by, d.read_at, c.epoch,
    c.id, c.topic, s.name, m.number
FROM delivery d
JOIN message m ON m.number = d.message
JOIN member r ON r.number = d.recipient
JOIN member s ON s.number = m.sender
JOIN conversation c ON c.number = m.conversation
WHERE d.message = $1 AND d.recipient = $2
