SELECT number, id, head_seq, head_ts_us, state, awaiting_seq, awaiting_by, awaiting_rev, epoch
FROM conversation WHERE topic = ?1
