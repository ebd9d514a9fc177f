SELECT c.id, c.topic, p.name, c.number, c.head_seq, c.epoch, c.floor_seq, c.floor_ts_us, c.floor_id
FROM conversation c
LEFT JOIN member p ON p.number = c.hi
WHERE c.id = ?1
