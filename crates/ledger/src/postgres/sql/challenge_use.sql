UPDATE challenge SET used_at = $2 WHERE hash = $1 AND used_at IS NULL
