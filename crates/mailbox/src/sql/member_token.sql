-- The token before this one lives on for a moment; the one before that is gone.
UPDATE member
SET old_token_hash = token_hash, old_until = CASE WHEN token_hash IS NULL THEN NULL ELSE :old_until END,
    token_hash = :token_hash
WHERE id = :id
