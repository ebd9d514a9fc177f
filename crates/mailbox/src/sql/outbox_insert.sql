INSERT INTO outbox (id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane, enqueued_at, deliver_by,
    payload, named, sorted)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)
