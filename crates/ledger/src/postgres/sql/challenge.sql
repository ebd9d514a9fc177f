SELECT node, expires_at, used_at FROM challenge WHERE hash = $1
