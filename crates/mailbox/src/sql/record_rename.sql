-- The broker lost the message and accepted it again: from now on it goes by the new name, and nothing is confirmed.
UPDATE inbox
SET broker_message_id = :message, conversation = :conversation, history_id = :history_id, rung_confirmed = 0
WHERE seq = :seq AND broker_message_id = :held
