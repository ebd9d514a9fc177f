-- Held by one claim at a time; another passes it over and finds it at its next look.
SELECT 1 FROM webhook WHERE member = $1 AND disabled_at IS NULL FOR UPDATE SKIP LOCKED
