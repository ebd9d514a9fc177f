SELECT count(*) FROM ticket WHERE invite = $1 AND used_at IS NULL AND expires_at > $2
