SELECT * FROM inbox_envelope WHERE seq = :seq
