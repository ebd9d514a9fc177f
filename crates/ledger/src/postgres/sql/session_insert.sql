INSERT INTO session (hash, member, created_at, expires_at) VALUES ($1, $2, $3, $4)
