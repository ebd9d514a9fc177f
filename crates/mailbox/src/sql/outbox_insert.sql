INSERT INTO outbox (id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane, enqueued_at, deliver_by)
VALUES (:id, :sender, :client_message_id, :fingerprint, :to_asked, :lane, :enqueued_at, :deliver_by)
