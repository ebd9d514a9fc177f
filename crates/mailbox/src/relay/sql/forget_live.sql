DELETE FROM envelope WHERE local_seq = :seq AND status = 1 AND lease_token = :lease
