UPDATE delivery SET rung = $3, ended_at = $4, ended_code = $5
WHERE message = ANY ($1::bigint[]) AND recipient = $2 AND rung = 1
RETURNING recipient, stretch
