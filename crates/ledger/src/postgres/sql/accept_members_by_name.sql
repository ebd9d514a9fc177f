SELECT name, number, home, removed_at FROM member WHERE name = ANY ($1::text[])
