DELETE FROM challenge WHERE expires_at <= $1
