SELECT lease_token FROM outbox WHERE seq = :seq
