DELETE FROM socket_ticket WHERE expires_at <= $1
