INSERT INTO mention_index (member, message)
SELECT g.member, g.message FROM unnest($1::bigint[], $2::bigint[]) AS g (message, member)
