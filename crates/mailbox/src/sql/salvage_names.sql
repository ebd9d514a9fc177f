SELECT seq FROM outbox_name ORDER BY key
