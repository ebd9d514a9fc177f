-- An interrupted turn whose message nobody took since may still be ended by its holder.
UPDATE turn SET state = :state, lease_until = NULL, ended_at = :now, error = :error, reply = :reply
WHERE seq = :seq AND state IN (0, 3)
