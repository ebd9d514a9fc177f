INSERT INTO lane (sender_member_id, lane, next_attempt_at, gone_since)
VALUES (:sender, :lane, :next_attempt_at, :gone_since)
ON CONFLICT (sender_member_id, lane)
DO UPDATE SET next_attempt_at = excluded.next_attempt_at, gone_since = excluded.gone_since
