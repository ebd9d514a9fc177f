SELECT id, name, kind FROM member WHERE id = :id
