SELECT version, updated_at, body FROM hub_record WHERE kind = $1 AND id = $2
