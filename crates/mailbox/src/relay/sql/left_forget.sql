DELETE FROM envelope_left WHERE NOT EXISTS (SELECT 1 FROM envelope
    WHERE status < 2 AND scope = envelope_left.scope AND barrier = 1)
