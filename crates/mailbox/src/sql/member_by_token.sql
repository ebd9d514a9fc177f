SELECT id, name, kind FROM member
WHERE token_hash = :token_hash OR (old_token_hash = :token_hash AND old_until > :now)
