-- While its message is kept, an id stays a way to it.
WITH forgotten AS (
    DELETE FROM dedupe WHERE ctid IN (
        SELECT ctid FROM dedupe WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING client_message_id, broker_message_id, first_seen_at, expires_at),
kept AS (
    INSERT INTO outlived (client_message_id, message)
    SELECT f.client_message_id, m.number FROM forgotten f JOIN message m ON m.id = f.broker_message_id)
SELECT first_seen_at, expires_at FROM forgotten
