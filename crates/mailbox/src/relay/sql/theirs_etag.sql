UPDATE envelope SET theirs_etag = :etag WHERE local_seq = :seq AND (status = 3 OR ending = 3)
