SELECT outbox.*, lane.next_attempt_at FROM outbox LEFT JOIN lane
    ON status = 0 AND lane.sender_member_id = outbox.sender_member_id AND lane.lane = outbox.lane
WHERE seq = :seq
