UPDATE node SET link_epoch = link_epoch + 1, last_seen_at = $2 WHERE number = $1 RETURNING link_epoch
