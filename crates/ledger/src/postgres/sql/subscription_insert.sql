INSERT INTO subscription (conversation, member, since) VALUES ($1, $2, $3) ON CONFLICT (conversation, member) DO NOTHING
