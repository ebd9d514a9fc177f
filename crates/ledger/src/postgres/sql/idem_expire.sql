DELETE FROM idem WHERE ctid IN (
    SELECT ctid FROM idem WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
RETURNING created_at
