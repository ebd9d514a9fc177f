-- Every row of the slice, so that the next slice knows where to begin; the third and fourth columns name an orphan.
SELECT d.client_message_id, d.sender_member_id,
    CASE WHEN d.state = 0 AND d.history_available = 1 AND d.first_seen_at < ?3 AND m.number IS NULL
        THEN d.broker_message_id END,
    CASE WHEN d.state = 0 AND m.number IS NOT NULL
        AND (d.conversation IS NOT m.conversation OR d.history_id IS NOT m.seq) THEN d.broker_message_id END
FROM dedupe d LEFT JOIN message m ON m.id = d.broker_message_id
WHERE (d.client_message_id, d.sender_member_id) > (?1, ?2)
ORDER BY d.client_message_id, d.sender_member_id LIMIT ?4
