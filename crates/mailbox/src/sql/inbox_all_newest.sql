SELECT seq FROM inbox
WHERE scrubbed_at IS NULL AND seq < :place
    AND (:unread = 0 OR read_at IS NULL) AND sender_member_id = coalesce(:from, sender_member_id)
ORDER BY seq DESC LIMIT :limit
