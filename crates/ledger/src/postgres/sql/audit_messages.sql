SELECT m.id
FROM message m LEFT JOIN dedupe d ON d.mesh = 1 AND d.sender_member_id = m.sender
    AND d.client_message_id = m.client_message_id AND d.broker_message_id = m.id AND d.state = 0
WHERE d.state IS NULL AND m.ts_us < $1 AND (m.dedupe_until IS NULL OR m.dedupe_until > $2)
            AND NOT EXISTS (SELECT 1 FROM outlived o
                WHERE o.client_message_id = m.client_message_id AND o.message = m.number)
ORDER BY m.number LIMIT $3
