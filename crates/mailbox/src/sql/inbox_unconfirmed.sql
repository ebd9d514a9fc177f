SELECT seq, broker_message_id, recipient_member_id, rung, rung_at, read_at FROM inbox
WHERE rung > rung_confirmed AND seq > :after ORDER BY seq LIMIT :limit
