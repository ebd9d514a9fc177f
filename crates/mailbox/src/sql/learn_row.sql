SELECT id, status, broker_message_id, superseded_by FROM outbox WHERE seq = :seq AND request_fingerprint = :fingerprint
