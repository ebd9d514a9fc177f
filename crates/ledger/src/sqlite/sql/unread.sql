SELECT count(*) FROM (SELECT 1 FROM message WHERE conversation = ?2 AND seq > ?3 AND sender <> ?1 LIMIT ?4)
