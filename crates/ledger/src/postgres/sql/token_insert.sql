INSERT INTO api_token (hash, member, scopes, created_at) VALUES ($1, $2, $3, $4)
