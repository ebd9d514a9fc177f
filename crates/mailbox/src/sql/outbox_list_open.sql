SELECT seq FROM outbox INDEXED BY outbox_open
WHERE status < 2 AND status = :status AND seq < :before AND sender_member_id = coalesce(:sender, sender_member_id)
ORDER BY seq DESC LIMIT :limit
