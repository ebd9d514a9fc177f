SELECT sender_member_id, lane FROM outbox WHERE status < 2 ORDER BY sender_member_id, lane LIMIT 1
