-- While the message is kept it leads to its sender's id; afterwards the dedupe row does.
SELECT sender, client_message_id, id FROM message WHERE id = $1
UNION ALL
SELECT sender_member_id, client_message_id, NULL FROM dedupe
WHERE broker_message_id = $1 AND NOT history_available AND broker_message_id IS NOT NULL
