SELECT x.message
FROM mention_index x LEFT JOIN message m ON m.number = x.message
WHERE m.number IS NULL
ORDER BY x.member, x.message LIMIT $1
