SELECT payload FROM outbox_payload WHERE seq = :seq
