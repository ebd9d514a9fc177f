UPDATE mesh SET topics = $1, dedupe_days = $2, conn_policy = $3
