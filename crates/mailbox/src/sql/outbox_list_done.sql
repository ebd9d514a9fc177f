SELECT seq FROM outbox
WHERE status = 2 AND seq < :before AND sender_member_id = coalesce(:sender, sender_member_id)
ORDER BY seq DESC LIMIT :limit
