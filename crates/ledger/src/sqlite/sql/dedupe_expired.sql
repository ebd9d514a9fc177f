SELECT sender_member_id, client_message_id FROM dedupe WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2
