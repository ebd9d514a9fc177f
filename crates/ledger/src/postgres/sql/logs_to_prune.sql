-- In the order in which accepts lock logs: topics first, each kind by number.
SELECT c.number
FROM conversation c JOIN message m ON m.conversation = c.number AND m.seq = c.floor_seq + 1
WHERE m.ts_us < $1
ORDER BY c.kind, c.number
