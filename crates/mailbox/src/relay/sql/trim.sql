SELECT local_seq FROM envelope WHERE status = 2 AND ended_at <= :before LIMIT :limit
