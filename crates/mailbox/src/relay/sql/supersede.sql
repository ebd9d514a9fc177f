UPDATE envelope SET status = 7, ending = NULL, superseded_by = :successor, ended_at = :now, resolution = :resolution
WHERE local_seq = :seq AND status = :expected
