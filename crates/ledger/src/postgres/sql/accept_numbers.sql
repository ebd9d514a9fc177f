SELECT nextval('message_number_seq') FROM generate_series(1, $1::bigint)
