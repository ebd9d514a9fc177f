SELECT number, id FROM member WHERE home = $1 AND removed_at IS NULL
