SELECT * FROM envelope WHERE idempotency_key = :key
