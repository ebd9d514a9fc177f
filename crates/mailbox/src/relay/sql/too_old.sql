-- By a date of the upstream that lies ahead a write is found when it is claimed: until the upstream answered, its time is
-- only guessed, and may be behind.
SELECT * FROM envelope WHERE outcome IN (1, 3) AND (status = 5
    OR status < 2 AND (ending = 5 OR queued_at <= :before_here OR queued_at > :ahead_here OR created_at <= :before_upstream))
ORDER BY local_seq LIMIT :limit
