DELETE FROM delivery WHERE message = ANY ($1::bigint[])
RETURNING recipient, CASE WHEN rung = 1 THEN stretch END
