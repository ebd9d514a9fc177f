DELETE FROM idem WHERE rowid IN (SELECT rowid FROM idem WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
RETURNING created_at
