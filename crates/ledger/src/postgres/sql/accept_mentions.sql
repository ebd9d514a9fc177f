INSERT INTO mention_index (member, message)
SELECT g.member, m.number FROM unnest($1::uuid[], $2::bigint[]) AS g (id, member) JOIN message m ON m.id = g.id
