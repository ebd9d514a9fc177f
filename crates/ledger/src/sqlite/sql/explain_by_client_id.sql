-- What the id means now comes first; then messages it meant before it was forgotten, the newest first.
SELECT d.sender_member_id, d.client_message_id, d.broker_message_id, NULL AS outlived
FROM dedupe d WHERE d.client_message_id = ?1
UNION ALL
SELECT m.sender, m.client_message_id, m.id, m.number
FROM outlived o JOIN message m ON m.number = o.message
WHERE o.client_message_id = ?1
ORDER BY 1, 4 DESC NULLS FIRST
