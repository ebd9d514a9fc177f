-- What the inbox had behind the place it went back to, or may have had there; and what was worked on lately, so that
-- nobody begins work again that is done. Reads every delivery, once for an inbox that went back.
UPDATE delivery SET again = 1
WHERE recipient IN (SELECT number FROM member WHERE home = ?1 AND removed_at IS NULL) AND rung >= 4
    AND (received_as IS NULL OR received_as > ?2 OR (rung >= 6 AND coalesce(processed_at, engaged_at) > ?3))
