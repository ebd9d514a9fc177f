DELETE FROM idem WHERE principal = $1 AND key = $2 AND state = 1
