UPDATE outbox_sorted SET upto = (SELECT coalesce(max(seq), 0) FROM outbox)
