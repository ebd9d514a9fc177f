INSERT INTO mail (recipient, first, last) VALUES (?1, ?2, ?3)
ON CONFLICT (recipient, first) DO UPDATE SET last = excluded.last
