INSERT INTO escalation (conversation, rev, seq, asked_by, at)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
