SELECT seq, request_fingerprint FROM outbox
WHERE status = 1 AND sender_member_id = :sender AND lane = :lane AND lease_token = :lease
ORDER BY seq
