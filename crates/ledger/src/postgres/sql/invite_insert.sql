INSERT INTO invite (hash, expected_node, role, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
