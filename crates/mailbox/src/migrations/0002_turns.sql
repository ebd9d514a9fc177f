-- An agent's work on one message. Rows are never deleted: how often a message was engaged is never forgotten.
CREATE TABLE turn (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    agent_member_id BLOB NOT NULL CHECK (length(agent_member_id) = 16),
    inbox_seq       INTEGER NOT NULL REFERENCES inbox (seq),
    attempt         INTEGER NOT NULL CHECK (attempt >= 1),
    redelivered     INTEGER NOT NULL CHECK (redelivered IN (0, 1)),
    holder          TEXT,
    began_at        INTEGER NOT NULL,
    state           INTEGER NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
    lease_until     INTEGER,
    ended_at        INTEGER,
    error           TEXT,
    reply           BLOB CHECK (length(reply) = 16),
    UNIQUE (inbox_seq, attempt),
    -- A state carries its data.
    CHECK ((state = 0) = (lease_until IS NOT NULL)),
    CHECK ((state = 0) = (ended_at IS NULL)),
    CHECK (reply IS NULL OR state IN (1, 2))
) STRICT;

ALTER TABLE inbox ADD COLUMN priority INTEGER NOT NULL DEFAULT 1 CHECK (priority BETWEEN 0 AND 2);
ALTER TABLE inbox ADD COLUMN turn INTEGER NOT NULL DEFAULT 0 CHECK (turn BETWEEN 0 AND 4);

-- One open turn per agent.
CREATE UNIQUE INDEX turn_open ON turn (agent_member_id) WHERE state = 0;
-- What waits for a turn: in the order of turns, and by conversation, whose order no priority changes.
CREATE INDEX inbox_turn_next ON inbox (recipient_member_id, priority, seq) WHERE turn IN (0, 2) AND scrubbed_at IS NULL;
CREATE INDEX inbox_turn_line ON inbox (recipient_member_id, conversation, seq) WHERE turn IN (0, 2) AND scrubbed_at IS NULL;
CREATE INDEX inbox_given_up ON inbox (recipient_member_id, seq) WHERE turn = 4;

DROP VIEW inbox_text;
CREATE VIEW inbox_text AS
SELECT
    seq, hex(sender_member_id) AS sender_member_id, client_message_id,
    hex(recipient_member_id) AS recipient_member_id, hex(broker_message_id) AS broker_message_id,
    hex(conversation) AS conversation, history_id, deliver_by, received_at,
    CASE rung WHEN 4 THEN 'delivered' WHEN 5 THEN 'notified' WHEN 6 THEN 'engaged' WHEN 7 THEN 'processed' END AS rung,
    rung_at, rung_confirmed, notified_at, read_at, redelivered, scrubbed_at,
    CASE priority WHEN 0 THEN 'now' WHEN 1 THEN 'next' WHEN 2 THEN 'low' END AS priority,
    CASE turn WHEN 0 THEN 'waiting' WHEN 1 THEN 'open' WHEN 2 THEN 'interrupted' WHEN 3 THEN 'over'
        WHEN 4 THEN 'given_up' END AS turn
FROM inbox;

CREATE VIEW turn_text AS
SELECT
    seq, hex(id) AS id, hex(agent_member_id) AS agent_member_id, inbox_seq, attempt, redelivered, holder, began_at,
    CASE state WHEN 0 THEN 'open' WHEN 1 THEN 'processed' WHEN 2 THEN 'failed' WHEN 3 THEN 'interrupted' END AS state,
    lease_until, ended_at, error, hex(reply) AS reply
FROM turn;
