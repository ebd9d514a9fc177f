SELECT request_fingerprint, client_message_id FROM outbox WHERE seq = :seq
