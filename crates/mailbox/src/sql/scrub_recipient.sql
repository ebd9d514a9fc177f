SELECT recipient_member_id FROM inbox
WHERE scrubbed_at IS NULL AND recipient_member_id > :after ORDER BY recipient_member_id LIMIT 1
