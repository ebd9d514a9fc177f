INSERT INTO sign_in (hash, member, expires_at) VALUES ($1, $2, $3)
