INSERT INTO message (number, conversation, seq, id, ts_us, sender, client_message_id, envelope, deliver_by, dedupe_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
