SELECT * FROM envelope WHERE envelope_id = :id AND named = 1
UNION ALL
SELECT * FROM envelope WHERE idempotency_key = :key AND envelope_id = :id AND named = 0
