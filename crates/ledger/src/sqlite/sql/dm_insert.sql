INSERT INTO conversation (id, kind, lo, hi, created_at) VALUES (?1, 1, ?2, ?3, ?4)
