SELECT m.id, m.name, m.kind, n.name, m.role, m.removed_at, s.expires_at
FROM session s JOIN member m ON m.number = s.member LEFT JOIN node n ON n.number = m.home
WHERE s.hash = $1 AND s.ended_at IS NULL AND s.expires_at > $2 AND m.removed_at IS NULL
