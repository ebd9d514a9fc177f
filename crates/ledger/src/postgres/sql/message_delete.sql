DELETE FROM message WHERE number = ANY ($1::bigint[])
