UPDATE turn SET state = 3, lease_until = NULL, ended_at = :now WHERE inbox_seq = :seq AND state = 0
