DELETE FROM outlived o USING message m
WHERE m.number = ANY ($1::bigint[]) AND o.client_message_id = m.client_message_id AND o.message = m.number
