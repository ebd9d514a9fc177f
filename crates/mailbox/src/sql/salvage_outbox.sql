SELECT * FROM outbox WHERE seq = :seq
