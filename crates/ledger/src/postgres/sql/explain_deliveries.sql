SELECT d.rung, d.rung_told, d.delivered_at, d.notified_at, d.engaged_at, d.processed_at, d.ended_at, d.ended_code,
    d.read_at, r.id, r.name, r.kind, n.name, r.role, r.removed_at
FROM delivery d JOIN member r ON r.number = d.recipient LEFT JOIN node n ON n.number = r.home
WHERE d.message = $1
ORDER BY d.recipient
