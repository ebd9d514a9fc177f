UPDATE delivery SET read_at = coalesce(read_at, ?3)
WHERE message = (SELECT number FROM message WHERE id = ?1) AND recipient = ?2
RETURNING read_at
