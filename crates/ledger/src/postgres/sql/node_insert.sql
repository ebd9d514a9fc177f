INSERT INTO node (name, public_key, link_epoch, joined_at, last_seen_at) VALUES ($1, $2, 0, $3, $3)
ON CONFLICT DO NOTHING RETURNING number
