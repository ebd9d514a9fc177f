SELECT EXISTS (SELECT 1 FROM outbox WHERE status = 1 AND sender_member_id = :sender AND lane = :lane)
