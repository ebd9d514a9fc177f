DELETE FROM mention_index WHERE message = ANY ($1::bigint[])
