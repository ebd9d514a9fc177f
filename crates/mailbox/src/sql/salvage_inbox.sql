SELECT * FROM inbox WHERE seq = :seq
