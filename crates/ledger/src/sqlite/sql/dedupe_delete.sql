DELETE FROM dedupe WHERE mesh = 1 AND sender_member_id = ?1 AND client_message_id = ?2 AND expires_at <= ?3
RETURNING first_seen_at, expires_at
