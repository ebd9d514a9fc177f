INSERT INTO idem (principal, key, state, created_at, expires_at) VALUES (?1, ?2, 1, ?3, ?4)
