SELECT w.member, w.url, w.created_at, w.old_secret_until, w.disabled_at, w.disabled_reason,
    (SELECT count(*) FROM delivery d WHERE d.recipient = w.member AND d.rung = 1 AND d.push_conversation IS NOT NULL),
    (SELECT count(*) FROM delivery d WHERE d.recipient = w.member AND d.rung = 3 AND d.push_conversation IS NOT NULL),
    m.id, m.name, m.kind, NULL, m.role, m.removed_at
FROM webhook w JOIN member m ON m.number = w.member
WHERE $1::text IS NULL OR m.name = $1
ORDER BY m.name
