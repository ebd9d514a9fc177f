INSERT INTO conversation (id, kind, topic, created_at)
SELECT g.id, 0, g.topic, $3 FROM unnest($1::uuid[], $2::text[]) AS g (id, topic)
ORDER BY g.topic
ON CONFLICT DO NOTHING RETURNING topic
