INSERT INTO meta (k, v) VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET v = excluded.v
