SELECT seq FROM outbox WHERE id = :id AND named = 1
UNION ALL
SELECT seq FROM outbox WHERE client_message_id = :name AND id = :id AND named = 0
