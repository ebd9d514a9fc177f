-- Whoever the broker hosts has it at once, unless it is pushed.
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation)
SELECT ?1, s.member, ?3, iif(m.home IS NULL AND m.pushed = 0, 4, 1), NULL, iif(m.home IS NULL AND m.pushed = 0, ?4, NULL),
    iif(m.pushed = 1, ?2, NULL)
FROM subscription s JOIN member m ON m.number = s.member
WHERE s.conversation = ?2 AND s.member <> ?3
