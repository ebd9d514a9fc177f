INSERT INTO hub_record (kind, id, version, seq, body, created_by, created_at, updated_by, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $7)
ON CONFLICT (kind, id) DO UPDATE SET version = excluded.version, seq = excluded.seq, body = excluded.body,
    created_by = CASE WHEN hub_record.body IS NULL THEN excluded.created_by ELSE hub_record.created_by END,
    created_at = CASE WHEN hub_record.body IS NULL THEN excluded.created_at ELSE hub_record.created_at END,
    updated_by = excluded.updated_by, updated_at = excluded.updated_at
WHERE hub_record.version = excluded.version - 1
