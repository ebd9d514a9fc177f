-- The mesh, the clock, a number for every message and the nodes that speak, as one statement; without nodes one row.
-- Shared, so that a newer link of a node opens before this transaction or after it, never in between.
SELECT m.id, m.slug, m.topics, m.dedupe_days, m.conn_policy, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    ARRAY(SELECT nextval('message_number_seq') FROM generate_series(1, $2::bigint)),
    n.name, n.number, n.link_epoch, n.removed_at
FROM mesh m LEFT JOIN (
    SELECT name, number, link_epoch, removed_at FROM node WHERE name = ANY ($1::text[]) ORDER BY number FOR SHARE
) n ON true
