-- A mentioned subscriber has a row already.
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at)
SELECT ?1, m.number, ?3, iif(m.home IS NULL, 4, 1), NULL, iif(m.home IS NULL, ?4, NULL)
FROM member m WHERE m.number = ?2
ON CONFLICT (message, recipient) DO NOTHING
