UPDATE envelope_body SET theirs = :theirs WHERE local_seq = :seq
