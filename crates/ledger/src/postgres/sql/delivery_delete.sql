DELETE FROM delivery WHERE message = ANY ($1::bigint[])
