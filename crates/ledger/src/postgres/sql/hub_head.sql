SELECT seq FROM hub_head WHERE kind = $1
