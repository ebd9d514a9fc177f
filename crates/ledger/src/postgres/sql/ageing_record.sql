SELECT borne_out_at, reached_at, doubted_since, doubted_least, ids_begun_at, ids_deadline_at, keys_begun_at
FROM ageing FOR UPDATE
