SELECT seq FROM outbox INDEXED BY outbox_aborted
WHERE status = 4 AND seq < :before AND sender_member_id = coalesce(:sender, sender_member_id)
ORDER BY seq DESC LIMIT :limit
