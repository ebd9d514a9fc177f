-- A direct message goes to the other of its two, or to its sender where both are one.
SELECT m.id
FROM message m JOIN conversation c ON c.number = m.conversation AND c.kind = 1
WHERE NOT EXISTS (SELECT 1 FROM delivery x
    WHERE x.message = m.number AND x.recipient = CASE WHEN c.lo = m.sender THEN c.hi ELSE c.lo END)
ORDER BY m.number LIMIT $1
