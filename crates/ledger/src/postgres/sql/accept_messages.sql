INSERT INTO message (conversation, seq, id, ts_us, sender, client_message_id, envelope, deliver_by, dedupe_until)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::bytea[],
    $8::bigint[], $9::bigint[])
    AS g (conversation, seq, id, ts, sender, client_message_id, envelope, deliver_by, until)
ORDER BY g.conversation, g.seq
