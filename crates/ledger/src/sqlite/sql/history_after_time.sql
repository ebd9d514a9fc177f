-- The planted bug's reading: by the clock of whoever wrote, not by the order of commits.
SELECT m.id, m.seq, m.ts_us, s.id, s.name, m.client_message_id, m.envelope
FROM message m JOIN member s ON s.number = m.sender
WHERE m.conversation = ?1 AND m.ts_us > ?2
ORDER BY m.ts_us, m.id LIMIT ?3
