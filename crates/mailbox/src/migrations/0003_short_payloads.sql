-- A short body stands in its row: a table less to write at every send. A long one stays apart, so that a row which is
-- rewritten at every step of its life does not take it along.
ALTER TABLE outbox ADD COLUMN payload BLOB; -- NULL: it is long, or scrubbed
