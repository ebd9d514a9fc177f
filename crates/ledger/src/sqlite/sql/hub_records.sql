SELECT r.kind, r.id, r.version, r.body, c.name, r.created_at, u.name, r.updated_at, r.seq
FROM hub_record r JOIN member c ON c.number = r.created_by JOIN member u ON u.number = r.updated_by
WHERE r.kind = ?1 AND r.seq > ?2 AND r.body IS NOT NULL ORDER BY r.seq LIMIT ?3
