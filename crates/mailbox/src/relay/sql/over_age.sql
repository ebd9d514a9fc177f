SELECT local_seq, outcome, body_bytes, order_key FROM envelope WHERE status = 0 AND sorted = 1 AND ending IS NULL AND queued_at <= :before
LIMIT :limit
