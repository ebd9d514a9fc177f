SELECT m.id, m.name, m.kind, n.name, m.role, m.removed_at
FROM node n JOIN member m ON m.home = n.number
WHERE n.number = $1 AND m.removed_at IS NULL
ORDER BY m.number
