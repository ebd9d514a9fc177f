SELECT payload FROM outbox WHERE seq = :seq AND payload IS NOT NULL
UNION ALL SELECT payload FROM outbox_payload WHERE seq = :seq
