SELECT seq FROM inbox INDEXED BY inbox_kept
WHERE recipient_member_id = :recipient AND scrubbed_at IS NULL AND seq > :place
    AND (:unread = 0 OR read_at IS NULL) AND sender_member_id = coalesce(:from, sender_member_id)
ORDER BY seq ASC LIMIT :limit
