-- The sender is told of every rung above accepted.
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at)
SELECT ?1, m.number, ?3, iif(m.home IS NULL, 4, 1), 1, iif(m.home IS NULL, ?4, NULL)
FROM member m WHERE m.number = ?2
