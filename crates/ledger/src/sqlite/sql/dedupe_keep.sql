-- As long as a copy may come for which this row is the reason of a no; never shorter than it was.
UPDATE dedupe SET expires_at = max(expires_at, ?3)
WHERE mesh = 1 AND sender_member_id = ?1 AND client_message_id = ?2
