SELECT 1 FROM member WHERE role = $1 AND removed_at IS NULL LIMIT 1
