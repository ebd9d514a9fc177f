-- As long as a copy may come for which this row is the reason of a no; never shorter than it was. `greatest` passes
-- over NULL, which stands for ever here.
UPDATE dedupe SET expires_at = CASE WHEN $3::bigint IS NULL OR expires_at IS NULL THEN NULL ELSE greatest(expires_at, $3) END
WHERE mesh = 1 AND sender_member_id = $1 AND client_message_id = $2
