UPDATE conversation SET state = CASE WHEN $2::smallint = 1 THEN 1 ELSE 0 END, paused = ($2::smallint = 2) WHERE id = $1
