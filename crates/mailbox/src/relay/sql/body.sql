SELECT body, theirs, base FROM envelope_body WHERE local_seq = :seq
