UPDATE hub_head SET seq = seq + 1 WHERE kind = ?1 RETURNING seq
