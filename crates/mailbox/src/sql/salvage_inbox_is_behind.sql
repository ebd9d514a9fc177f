SELECT 1 FROM inbox WHERE seq > :seq LIMIT 1
