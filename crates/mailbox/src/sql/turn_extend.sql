UPDATE turn SET lease_until = :lease_until WHERE seq = :seq AND state = 0
