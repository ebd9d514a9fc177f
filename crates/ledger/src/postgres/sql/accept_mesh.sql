-- With the clock, so that the two are one statement.
SELECT id, slug, topics, dedupe_days, conn_policy, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM mesh
