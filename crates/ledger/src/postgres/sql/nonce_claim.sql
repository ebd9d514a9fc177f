INSERT INTO nonce (value, until) VALUES ($1, $2) ON CONFLICT (value) DO NOTHING
