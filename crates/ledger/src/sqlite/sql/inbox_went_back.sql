INSERT INTO inbox_mark (node, received_upto, went_back_at, went_back_from, went_back_to) VALUES (?1, ?3, ?4, ?2, ?3)
ON CONFLICT (node) DO UPDATE SET received_upto = excluded.received_upto, went_back_at = excluded.went_back_at,
    went_back_from = excluded.went_back_from, went_back_to = excluded.went_back_to
