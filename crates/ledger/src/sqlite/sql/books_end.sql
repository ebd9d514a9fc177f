-- What only rises: a log's head never goes back, also when the clock does.
SELECT max(created_at, coalesce((SELECT max(head_ts_us) FROM conversation), 0)) FROM mesh
