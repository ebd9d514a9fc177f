UPDATE outbox SET lease_token = :lease, lease_until = :until WHERE seq = :seq AND status = :status
