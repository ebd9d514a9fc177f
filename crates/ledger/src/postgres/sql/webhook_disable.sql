UPDATE webhook SET disabled_at = $2, disabled_reason = $3 WHERE member = $1 AND disabled_at IS NULL
