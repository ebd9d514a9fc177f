UPDATE envelope SET late_ack_at = coalesce(late_ack_at, :now), outcome = 2 WHERE local_seq = :seq AND status IN (6, 7)
