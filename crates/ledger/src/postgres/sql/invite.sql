SELECT expected_node, role, expires_at, used_at, revoked_at FROM invite WHERE hash = $1
