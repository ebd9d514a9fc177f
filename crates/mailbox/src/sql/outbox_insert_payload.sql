INSERT INTO outbox_payload (seq, payload) VALUES (:seq, :payload)
