UPDATE conversation SET head_seq = ?2, head_ts_us = ?3, awaiting_seq = ?4, awaiting_by = ?5, awaiting_rev = ?6
WHERE number = ?1
