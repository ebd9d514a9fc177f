UPDATE node SET inbox_epoch = $2, redelivered_upto = $3, last_seen_at = $4 WHERE number = $1
