INSERT INTO mesh (number, id, slug, topics, dedupe_days, conn_policy, created_at)
VALUES (1, $1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
