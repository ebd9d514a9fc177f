INSERT INTO issuer (key_id, secret, created_at) VALUES (1, $1, $2) ON CONFLICT DO NOTHING
