SELECT * FROM envelope WHERE local_seq > :after ORDER BY local_seq LIMIT :limit
