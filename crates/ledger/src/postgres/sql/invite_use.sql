UPDATE invite SET used_at = $2 WHERE hash = $1 AND used_at IS NULL AND revoked_at IS NULL RETURNING role
