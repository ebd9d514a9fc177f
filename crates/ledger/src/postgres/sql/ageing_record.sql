SELECT borne_out_at, reached_at, doubted_since, doubted_least, ids_tried_upto, ids_deadline_upto, keys_made_upto
FROM ageing FOR UPDATE
