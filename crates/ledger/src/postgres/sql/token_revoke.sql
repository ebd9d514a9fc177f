UPDATE api_token SET revoked_at = $2 WHERE number = $1 AND revoked_at IS NULL
