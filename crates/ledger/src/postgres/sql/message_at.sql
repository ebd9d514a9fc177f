SELECT id, ts_us FROM message WHERE conversation = $1 AND seq = $2
