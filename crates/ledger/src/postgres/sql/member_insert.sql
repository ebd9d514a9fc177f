-- A taken name or id inserts nothing.
INSERT INTO member (id, name, kind, home, role, created_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
