SELECT kind FROM hub_head WHERE kind = ANY ($1) ORDER BY kind FOR UPDATE
