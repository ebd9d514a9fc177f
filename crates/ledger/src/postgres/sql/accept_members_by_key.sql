SELECT n.public_key, m.number, m.home, m.removed_at
FROM node n JOIN member m ON m.home = n.number AND m.kind = 0
WHERE n.public_key = ANY ($1::bytea[])
