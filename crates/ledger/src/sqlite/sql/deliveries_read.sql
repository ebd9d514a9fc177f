UPDATE delivery SET read_at = ?5
WHERE recipient = ?1 AND read_at IS NULL
    AND message IN (SELECT number FROM message WHERE conversation = ?2 AND seq > ?3 AND seq <= ?4)
