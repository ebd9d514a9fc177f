DELETE FROM outlived
WHERE client_message_id = (SELECT client_message_id FROM message WHERE number = ?1) AND message = ?1
