-- Whoever the broker hosts has it at once.
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at)
SELECT ?1, s.member, ?3, iif(m.home IS NULL, 4, 1), NULL, iif(m.home IS NULL, ?4, NULL)
FROM subscription s JOIN member m ON m.number = s.member
WHERE s.conversation = ?2 AND s.member <> ?3
