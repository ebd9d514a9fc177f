SELECT sender_member_id, lane FROM outbox WHERE status < 2 AND sorted = 1 ORDER BY sender_member_id, lane LIMIT 1
