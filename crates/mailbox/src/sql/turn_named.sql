SELECT seq FROM inbox WHERE broker_message_id = :message AND recipient_member_id = :agent AND scrubbed_at IS NULL
