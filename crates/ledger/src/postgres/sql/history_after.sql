SELECT m.id, m.seq, m.ts_us, s.id, s.name, m.client_message_id, m.envelope
FROM message m JOIN member s ON s.number = m.sender
WHERE m.conversation = $1 AND m.seq > $2
ORDER BY m.seq LIMIT $3
