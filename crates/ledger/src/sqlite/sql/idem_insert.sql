INSERT INTO idem (principal, key, state, method, path, fingerprint, status, etag, body, created_at, expires_at)
VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
