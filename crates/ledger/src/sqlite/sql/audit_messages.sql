-- A direct message goes to the other of its two, or to its sender where both are one.
SELECT m.number,
    d.state IS NULL AND m.ts_us < ?2 AND (m.dedupe_until IS NULL OR m.dedupe_until > ?3)
            AND NOT EXISTS (SELECT 1 FROM outlived o
                WHERE o.client_message_id = m.client_message_id AND o.message = m.number),
    m.id,
    c.kind = 1 AND NOT EXISTS (SELECT 1 FROM delivery x
        WHERE x.message = m.number AND x.recipient = iif(c.lo = m.sender, c.hi, c.lo))
FROM message m LEFT JOIN conversation c ON c.number = m.conversation
LEFT JOIN dedupe d ON d.mesh = 1 AND d.sender_member_id = m.sender
    AND d.client_message_id = m.client_message_id AND d.broker_message_id = m.id AND d.state = 0
WHERE m.number > ?1
ORDER BY m.number LIMIT ?4
