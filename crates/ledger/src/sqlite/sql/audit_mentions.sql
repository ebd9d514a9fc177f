SELECT x.member, x.message, m.number IS NULL
FROM mention_index x LEFT JOIN message m ON m.number = x.message
WHERE (x.member, x.message) > (?1, ?2)
ORDER BY x.member, x.message LIMIT ?3
