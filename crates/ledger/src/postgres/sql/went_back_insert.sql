INSERT INTO went_back (noticed_at, ends_at, upto, noticed_by) VALUES ($1, $2, $3, $4)
ON CONFLICT (noticed_at) DO NOTHING
