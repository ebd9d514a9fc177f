-- Keyed by id before sender: ids that are minted in the order of time, by whomever, then go to the end of one tree and
-- a batch changes few pages. A key that began with the sender had an end for each of them.
DROP VIEW dedupe_text;
ALTER TABLE dedupe RENAME TO dedupe_by_sender;
CREATE TABLE dedupe (
    mesh INTEGER NOT NULL CHECK (mesh = 1),
    sender_member_id INTEGER NOT NULL,
    client_message_id TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (0, 1)),
    request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
    broker_message_id BLOB CHECK (length(broker_message_id) = 16),
    conversation INTEGER,
    history_id INTEGER,
    destination_kind INTEGER CHECK (destination_kind IN (0, 1)),
    destination_ref TEXT,
    first_seen_at INTEGER NOT NULL,
    expires_at INTEGER, -- NULL: for ever
    history_available INTEGER NOT NULL CHECK (history_available IN (0, 1)),
    PRIMARY KEY (client_message_id, sender_member_id, mesh),
    CHECK ((state = 0) = (broker_message_id IS NOT NULL AND conversation IS NOT NULL AND history_id IS NOT NULL
        AND destination_kind IS NOT NULL AND destination_ref IS NOT NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO dedupe SELECT * FROM dedupe_by_sender ORDER BY client_message_id, sender_member_id;
DROP TABLE dedupe_by_sender;
CREATE INDEX dedupe_expires ON dedupe (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX dedupe_pruned ON dedupe (broker_message_id) WHERE history_available = 0 AND broker_message_id IS NOT NULL;
CREATE VIEW dedupe_text AS
SELECT sender_member_id, client_message_id, CASE state WHEN 0 THEN 'accepted' WHEN 1 THEN 'retired' END AS state,
    lower(hex(request_fingerprint)) AS request_fingerprint, lower(hex(broker_message_id)) AS broker_message_id,
    conversation, history_id, CASE destination_kind WHEN 0 THEN 'topic' WHEN 1 THEN 'dm' END AS destination_kind,
    destination_ref, first_seen_at, expires_at, history_available
FROM dedupe;
