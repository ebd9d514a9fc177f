-- A role that may not see more of a standby gets NULL for its state. What takes a base backup is none.
SELECT application_name, sync_state FROM pg_stat_replication WHERE coalesce(state, 'streaming') IN ('streaming', 'catchup')
ORDER BY application_name
