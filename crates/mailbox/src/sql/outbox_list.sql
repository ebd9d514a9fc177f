SELECT seq FROM outbox
WHERE seq < :before AND sender_member_id = coalesce(:sender, sender_member_id)
ORDER BY seq DESC LIMIT :limit
