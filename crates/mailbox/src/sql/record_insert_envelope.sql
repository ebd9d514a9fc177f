INSERT INTO inbox_envelope (seq, envelope) VALUES (:seq, :envelope)
