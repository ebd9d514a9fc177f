-- Every row has an entry here; the table itself is not read.
SELECT seq FROM inbox INDEXED BY inbox_message ORDER BY broker_message_id, recipient_member_id
