DELETE FROM envelope_body WHERE local_seq = :seq
