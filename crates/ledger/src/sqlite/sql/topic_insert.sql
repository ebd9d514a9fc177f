INSERT INTO conversation (id, kind, topic, created_at) VALUES (?1, 0, ?2, ?3)
