UPDATE conversation SET state = $2 WHERE id = $1
