UPDATE conversation SET floor_seq = ?2, floor_ts_us = m.ts_us, floor_id = m.id
FROM message m
WHERE conversation.number = ?1 AND m.number = ?3
