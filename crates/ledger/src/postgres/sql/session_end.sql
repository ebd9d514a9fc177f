UPDATE session SET ended_at = $2 WHERE hash = $1 AND ended_at IS NULL
