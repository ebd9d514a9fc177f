UPDATE conversation c SET floor_seq = m.seq, floor_ts_us = m.ts_us, floor_id = m.id
FROM message m
WHERE c.number = $1 AND m.number = $2
