SELECT m.id, m.name, m.kind, n.name, m.role, m.removed_at
FROM member m LEFT JOIN node n ON n.number = m.home
WHERE m.number = $1
