-- Every row has an entry here; the table itself is not read.
SELECT seq FROM outbox INDEXED BY outbox_id ORDER BY id
