SELECT borne_out_at, reached_at, doubted_since, doubted_least FROM ageing
