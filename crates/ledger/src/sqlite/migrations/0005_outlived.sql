-- Messages that are kept longer than their id: the way from the id to them, once its dedupe row was forgotten.
CREATE TABLE outlived (
    client_message_id TEXT NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (client_message_id, message)
) STRICT, WITHOUT ROWID;
INSERT INTO outlived (client_message_id, message)
SELECT m.client_message_id, m.number FROM message m
WHERE NOT EXISTS (SELECT 1 FROM dedupe d WHERE d.mesh = 1 AND d.sender_member_id = m.sender
    AND d.client_message_id = m.client_message_id AND d.broker_message_id = m.id);
