INSERT INTO outbox_payload (seq, payload) VALUES (?1, ?2)
