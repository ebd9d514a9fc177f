INSERT INTO socket_ticket (hash, credential, expires_at) VALUES ($1, $2, $3)
