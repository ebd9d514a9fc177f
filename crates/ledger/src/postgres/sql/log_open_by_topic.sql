SELECT c.id, c.topic, NULL, c.number, c.head_seq, c.epoch, c.floor_seq, c.floor_ts_us, c.floor_id
FROM conversation c
WHERE c.topic = $1
