SELECT number, removed_at IS NOT NULL FROM member r
WHERE EXISTS (SELECT 1 FROM delivery d WHERE d.recipient = r.number AND d.rung = 1)
