SELECT m.id, d.message, m.number IS NULL
    OR (k.state IS NULL AND m.ts_us < $1 AND (m.dedupe_until IS NULL OR m.dedupe_until > $2)
            AND NOT EXISTS (SELECT 1 FROM outlived o
                WHERE o.client_message_id = m.client_message_id AND o.message = m.number))
FROM delivery d LEFT JOIN message m ON m.number = d.message
LEFT JOIN dedupe k ON k.mesh = 1 AND k.sender_member_id = m.sender
    AND k.client_message_id = m.client_message_id AND k.broker_message_id = m.id AND k.state = 0
WHERE d.rung = 1 AND (m.number IS NULL
    OR (k.state IS NULL AND m.ts_us < $1 AND (m.dedupe_until IS NULL OR m.dedupe_until > $2)
            AND NOT EXISTS (SELECT 1 FROM outlived o
                WHERE o.client_message_id = m.client_message_id AND o.message = m.number))
    OR NOT EXISTS (SELECT 1 FROM mail w
        WHERE w.recipient = d.recipient AND w.first = d.stretch AND d.message BETWEEN w.first AND w.last))
ORDER BY d.message, d.recipient LIMIT $3
