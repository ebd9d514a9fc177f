INSERT INTO challenge (hash, node, expires_at) VALUES ($1, $2, $3)
