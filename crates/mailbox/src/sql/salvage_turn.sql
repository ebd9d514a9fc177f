SELECT * FROM turn WHERE seq = :seq
