DELETE FROM sign_in WHERE expires_at <= $1
