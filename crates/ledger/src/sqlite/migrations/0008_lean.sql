-- Numbers of messages without a table that has the last one: a commit writes a page less. What was pruned is remembered
-- in the mesh, so that no number comes twice.
ALTER TABLE mesh ADD COLUMN numbers_upto INTEGER NOT NULL DEFAULT 0; -- the highest number of a pruned message
UPDATE mesh SET numbers_upto = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0);
ALTER TABLE message RENAME TO message_with_sequence;
DROP INDEX message_deliver_by;
CREATE TABLE message (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    ts_us INTEGER NOT NULL,
    sender INTEGER NOT NULL,
    client_message_id TEXT NOT NULL, -- no unique index: the dedupe row is the only authority
    envelope BLOB NOT NULL,
    deliver_by INTEGER,
    dedupe_until INTEGER, -- NULL: for ever
    UNIQUE (conversation, seq)
) STRICT;
INSERT INTO message SELECT * FROM message_with_sequence ORDER BY number;
DROP TABLE message_with_sequence;
CREATE INDEX message_deliver_by ON message (deliver_by) WHERE deliver_by IS NOT NULL;
-- Ids are forgotten by a walk over all of them: an index by time is a row more for every accept.
DROP INDEX dedupe_expires;
-- Pushed rows that wait and those that were given up, in one index: every one has a say in every row that is written.
DROP INDEX delivery_push;
DROP INDEX delivery_parked;
CREATE INDEX delivery_push ON delivery (recipient, rung, push_conversation, message)
    WHERE push_conversation IS NOT NULL AND (rung = 1 OR rung = 3);
