DELETE FROM lane WHERE sender_member_id = :sender AND lane = :lane
