SELECT turn, (SELECT coalesce(max(attempt), 0) FROM turn WHERE inbox_seq = inbox.seq) AS attempts, rung FROM inbox WHERE seq = :seq
