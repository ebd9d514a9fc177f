SELECT c.topic, c.id, c.head_seq, (SELECT count(*) FROM subscription s WHERE s.conversation = c.number),
    EXISTS (SELECT 1 FROM subscription s JOIN member m ON m.number = s.member
        WHERE s.conversation = c.number AND m.id = $1)
FROM conversation c
WHERE c.topic > $2
ORDER BY c.topic LIMIT $3
