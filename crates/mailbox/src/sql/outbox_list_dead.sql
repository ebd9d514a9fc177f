SELECT seq FROM outbox INDEXED BY outbox_dead
WHERE status = 3 AND seq < :before AND sender_member_id = coalesce(:sender, sender_member_id)
ORDER BY seq DESC LIMIT :limit
