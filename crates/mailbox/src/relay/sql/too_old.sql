SELECT * FROM envelope WHERE outcome IN (1, 3) AND (status = 5
    OR status < 2 AND (ending = 5 OR queued_at <= :before_here OR created_at <= :before_upstream))
ORDER BY local_seq LIMIT :limit
