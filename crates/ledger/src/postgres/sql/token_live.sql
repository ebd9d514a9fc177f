SELECT t.number, t.scopes, t.created_at, t.revoked_at, m.id, m.name, m.kind, n.name, m.role, m.removed_at
FROM api_token t JOIN member m ON m.number = t.member LEFT JOIN node n ON n.number = m.home
WHERE t.hash = $1 AND t.revoked_at IS NULL AND m.removed_at IS NULL
