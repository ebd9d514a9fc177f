UPDATE webhook SET served_at = $2 WHERE member = $1
