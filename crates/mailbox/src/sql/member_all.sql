SELECT id, name, kind FROM member ORDER BY name
