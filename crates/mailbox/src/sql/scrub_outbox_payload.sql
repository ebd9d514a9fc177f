DELETE FROM outbox_payload WHERE seq = :seq
