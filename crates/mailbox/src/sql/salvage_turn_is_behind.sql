SELECT 1 FROM turn WHERE seq > :seq LIMIT 1
