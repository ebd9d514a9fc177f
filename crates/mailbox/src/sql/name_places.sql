SELECT seq FROM outbox_name WHERE key = ?1
