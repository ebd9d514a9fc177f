SELECT number, home, removed_at FROM member WHERE id = $1
