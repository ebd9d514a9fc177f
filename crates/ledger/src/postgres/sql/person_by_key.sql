SELECT m.id, m.name, m.kind, n.name, m.role, m.removed_at
FROM node n JOIN member m ON m.home = n.number AND m.kind = 0
WHERE n.public_key = $1
