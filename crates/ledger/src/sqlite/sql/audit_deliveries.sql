-- Every row of the slice, so that the next slice knows where to begin; only mail is looked at.
SELECT d.message, d.recipient,
    d.rung = 1 AND (m.number IS NULL
        OR (k.state IS NULL AND m.ts_us < ?3 AND (m.dedupe_until IS NULL OR m.dedupe_until > ?4)
            AND NOT EXISTS (SELECT 1 FROM outlived o
                WHERE o.client_message_id = m.client_message_id AND o.message = m.number))),
    m.id,
    d.rung = 1 AND NOT EXISTS (SELECT 1 FROM mail w WHERE w.recipient = d.recipient AND d.message <= w.last
        AND w.first = (SELECT max(first) FROM mail WHERE recipient = d.recipient AND first <= d.message))
FROM delivery d LEFT JOIN message m ON d.rung = 1 AND m.number = d.message
LEFT JOIN dedupe k ON k.mesh = 1 AND k.sender_member_id = m.sender
    AND k.client_message_id = m.client_message_id AND k.broker_message_id = m.id AND k.state = 0
WHERE (d.message, d.recipient) > (?1, ?2)
ORDER BY d.message, d.recipient LIMIT ?5
