SELECT count(*) FROM member r JOIN delivery d ON d.recipient = r.number AND d.again = 1
WHERE r.home = $1 AND r.removed_at IS NULL
