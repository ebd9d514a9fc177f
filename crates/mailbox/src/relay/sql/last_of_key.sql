SELECT envelope_id FROM envelope WHERE status < 2 AND sorted = 1 AND order_key = :order_key ORDER BY place DESC, local_seq DESC LIMIT 1
