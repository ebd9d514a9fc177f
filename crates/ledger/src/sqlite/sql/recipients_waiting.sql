SELECT number, removed_at IS NOT NULL FROM member r
WHERE EXISTS (SELECT 1 FROM mail w WHERE w.recipient = r.number)
