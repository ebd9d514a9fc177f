-- Whoever the broker hosts has it at once, unless it is pushed.
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation)
SELECT m.number, s.member, m.sender, CASE WHEN r.home IS NULL AND NOT r.pushed THEN 4 ELSE 1 END, NULL,
    CASE WHEN r.home IS NULL AND NOT r.pushed THEN m.ts_us END, CASE WHEN r.pushed THEN m.conversation END
FROM message m
JOIN subscription s ON s.conversation = m.conversation AND s.member <> m.sender
JOIN member r ON r.number = s.member
WHERE m.id = ANY ($1::uuid[])
ORDER BY m.number, s.member
