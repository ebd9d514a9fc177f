SELECT conversation, seq, ts_us FROM message WHERE id = $1
