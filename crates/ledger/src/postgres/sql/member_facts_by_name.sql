SELECT number, home, removed_at FROM member WHERE name = $1
