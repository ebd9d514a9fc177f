SELECT id, name, kind FROM member WHERE name = :name
