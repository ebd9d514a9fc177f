-- A member has one webhook.
INSERT INTO webhook (member, url, secret, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (member) DO NOTHING
