SELECT seq, received_at FROM inbox
WHERE recipient_member_id = :recipient AND scrubbed_at IS NULL AND seq > :after ORDER BY seq LIMIT :limit
