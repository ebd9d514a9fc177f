SELECT noticed_at, ends_at, upto, noticed_by FROM went_back ORDER BY noticed_at DESC LIMIT 1
