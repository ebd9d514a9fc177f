SELECT state, fingerprint, status, etag, body, created_at FROM idem WHERE principal = $1 AND key = $2
