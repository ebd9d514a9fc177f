INSERT INTO envelope_body (local_seq, body, base) VALUES (:seq, :body, :base)
