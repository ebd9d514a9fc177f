SELECT hash, expected_node, role, expires_at, used_at, revoked_at FROM invite ORDER BY created_at, hash
