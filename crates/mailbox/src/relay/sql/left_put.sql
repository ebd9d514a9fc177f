INSERT INTO envelope_left (order_key, scope, tag)
SELECT :order_key, :scope, :tag WHERE EXISTS (SELECT 1 FROM envelope
    WHERE status < 2 AND scope = :scope AND barrier = 1 AND base_envelope IS NOT NULL AND local_seq > :seq)
ON CONFLICT (order_key) DO UPDATE SET tag = excluded.tag
