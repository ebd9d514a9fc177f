INSERT INTO outbox (id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane, enqueued_at, deliver_by,
    payload, named, sorted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
