-- A mentioned subscriber has a row already.
INSERT INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation)
SELECT ?1, m.number, ?3, iif(m.home IS NULL AND m.pushed = 0, 4, 1), NULL, iif(m.home IS NULL AND m.pushed = 0, ?4, NULL),
    iif(m.pushed = 1, (SELECT conversation FROM message WHERE number = ?1), NULL)
FROM member m WHERE m.number = ?2
ON CONFLICT (message, recipient) DO NOTHING
RETURNING rung
