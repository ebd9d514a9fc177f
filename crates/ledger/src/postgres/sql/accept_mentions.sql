INSERT INTO mention_index (member, message)
SELECT g.member, m.number FROM unnest($1::uuid[], $2::bigint[]) AS g (id, member)
CROSS JOIN LATERAL (SELECT number FROM message WHERE id = g.id OFFSET 0) m
