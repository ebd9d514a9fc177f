INSERT INTO ticket (hash, invite, node, public_key, aud, person, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
