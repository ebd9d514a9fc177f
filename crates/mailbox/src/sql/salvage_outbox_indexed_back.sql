SELECT seq FROM outbox INDEXED BY outbox_id ORDER BY id DESC
