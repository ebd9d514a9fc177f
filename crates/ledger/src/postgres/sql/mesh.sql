SELECT id, slug, topics, dedupe_days, conn_policy FROM mesh
