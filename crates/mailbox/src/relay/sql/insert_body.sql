INSERT INTO envelope_body (local_seq, body) VALUES (:seq, :body)
