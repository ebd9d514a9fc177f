-- Each log by its first row: only that one can be the oldest.
SELECT c.number
FROM conversation c CROSS JOIN message m ON m.conversation = c.number AND m.seq = c.floor_seq + 1
WHERE m.ts_us < ?1
