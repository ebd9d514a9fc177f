SELECT * FROM envelope WHERE local_seq > :after AND status = :status ORDER BY local_seq LIMIT :limit
