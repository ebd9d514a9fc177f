INSERT INTO inbox (sender_member_id, client_message_id, recipient_member_id, broker_message_id, conversation,
    history_id, deliver_by, received_at, rung, rung_at, read_at, redelivered, priority)
VALUES (:sender, :client_message_id, :recipient, :message, :conversation,
    :history_id, :deliver_by, :now, 4, :now, :read_at, :redelivered, :priority)
