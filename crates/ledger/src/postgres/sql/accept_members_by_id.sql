SELECT id, number, home, removed_at FROM member WHERE id = ANY ($1::uuid[])
