UPDATE socket_ticket SET used_at = $2 WHERE hash = $1 AND used_at IS NULL AND expires_at > $2 RETURNING credential
