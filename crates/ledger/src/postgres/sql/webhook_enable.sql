UPDATE webhook SET disabled_at = NULL, disabled_reason = NULL WHERE member = $1
