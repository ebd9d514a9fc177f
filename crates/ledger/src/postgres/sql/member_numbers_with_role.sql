SELECT number FROM member WHERE role = $1 AND removed_at IS NULL
