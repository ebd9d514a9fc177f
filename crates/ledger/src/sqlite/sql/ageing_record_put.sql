INSERT INTO ageing (number, borne_out_at, reached_at, doubted_since, doubted_least)
VALUES (1, ?1, ?2, ?3, ?4)
ON CONFLICT (number) DO UPDATE SET borne_out_at = excluded.borne_out_at, reached_at = excluded.reached_at,
    doubted_since = excluded.doubted_since, doubted_least = excluded.doubted_least
