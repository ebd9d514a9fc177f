DELETE FROM ticket WHERE expires_at <= $1
