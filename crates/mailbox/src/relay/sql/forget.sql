DELETE FROM envelope WHERE local_seq = :seq
