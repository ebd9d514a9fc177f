SELECT next_attempt_at, gone_since FROM lane WHERE sender_member_id = :sender AND lane = :lane
