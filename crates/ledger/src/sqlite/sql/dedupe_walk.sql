SELECT client_message_id, sender_member_id, coalesce(expires_at <= ?3, 0)
FROM dedupe WHERE (client_message_id, sender_member_id) > (?1, ?2)
ORDER BY client_message_id, sender_member_id LIMIT ?4
