SELECT sender_member_id, lane FROM outbox
WHERE status < 2 AND (sender_member_id, lane) > (:sender, :lane)
ORDER BY sender_member_id, lane LIMIT 1
