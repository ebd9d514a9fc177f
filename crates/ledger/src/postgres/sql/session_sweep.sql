DELETE FROM session WHERE expires_at <= $1 OR ended_at <= $1
