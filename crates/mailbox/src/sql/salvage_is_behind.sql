SELECT 1 FROM outbox WHERE seq > :seq LIMIT 1
