SELECT * FROM outbox_payload WHERE seq = :seq
