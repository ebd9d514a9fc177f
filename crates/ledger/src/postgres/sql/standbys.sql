-- A role that may not see more of a standby gets NULL for its state. What takes a base backup is none, and what reads
-- changes by logical decoding neither.
SELECT r.application_name, r.sync_state FROM pg_stat_replication r
WHERE coalesce(r.state, 'streaming') IN ('streaming', 'catchup')
    AND NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')
ORDER BY r.application_name
