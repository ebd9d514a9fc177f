SELECT invite, node, public_key, aud, person, expires_at, used_at FROM ticket WHERE hash = $1
