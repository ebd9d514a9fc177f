SELECT c.number
FROM conversation c JOIN message m ON m.conversation = c.number AND m.seq = c.floor_seq + 1
WHERE m.ts_us < $1
ORDER BY c.number
