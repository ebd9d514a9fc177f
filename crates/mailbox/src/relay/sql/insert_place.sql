UPDATE envelope SET place = local_seq WHERE local_seq = :seq
