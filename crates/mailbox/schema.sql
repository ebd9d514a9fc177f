-- The tables of mailbox.db after all migrations. Instants are integer microseconds; (b) marks broker time.

-- Facts about this node in this mesh, by name.
CREATE TABLE meta (
    k TEXT PRIMARY KEY,
    v TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Addresses at home here. Tokens are kept as SHA-256; the one before the last lives until old_until.
CREATE TABLE member (
    id             BLOB PRIMARY KEY CHECK (length(id) = 16),
    name           TEXT NOT NULL UNIQUE,
    kind           TEXT NOT NULL CHECK (kind IN ('person', 'agent', 'service')),
    token_hash     BLOB UNIQUE CHECK (length(token_hash) = 32),
    old_token_hash BLOB UNIQUE CHECK (length(old_token_hash) = 32),
    old_until      INTEGER,
    CHECK ((old_token_hash IS NULL) = (old_until IS NULL))
) STRICT, WITHOUT ROWID;

-- What callers handed over. Rows are never deleted: an id once used is used for ever, and so is a place.
CREATE TABLE outbox (
    seq                 INTEGER PRIMARY KEY,
    id                  BLOB NOT NULL CHECK (length(id) = 16),
    sender_member_id    BLOB NOT NULL CHECK (length(sender_member_id) = 16),
    client_message_id   TEXT NOT NULL,
    request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
    to_asked            TEXT NOT NULL,
    lane                TEXT NOT NULL,
    enqueued_at         INTEGER NOT NULL,
    deliver_by          INTEGER,            -- (b)
    status              INTEGER NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 4),
    attempts            INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    first_attempt_at    INTEGER,            -- (b)
    lease_token         BLOB CHECK (length(lease_token) = 16),
    lease_until         INTEGER,            -- an operator's hold; a courier's lease has no end of its own
    last_error          TEXT,
    dead_reason         INTEGER CHECK (dead_reason BETWEEN 0 AND 7),
    outcome             INTEGER CHECK (outcome BETWEEN 0 AND 3),
    outcome_settled_at  INTEGER,            -- when the broker's word on it became final
    broker_message_id   BLOB CHECK (length(broker_message_id) = 16),
    conversation        BLOB CHECK (length(conversation) = 16),
    history_id          INTEGER,
    accepted_at         INTEGER,            -- (b)
    delivered_at        INTEGER,
    notified_at         INTEGER,
    engaged_at          INTEGER,
    processed_at        INTEGER,
    ended_as            INTEGER CHECK (ended_as IN (2, 3)),
    aborted_at          INTEGER,
    aborted_by          INTEGER CHECK (aborted_by BETWEEN 0 AND 2),
    superseded_by       BLOB CHECK (length(superseded_by) = 16),
    late_ack_at         INTEGER,
    scrubbed_at         INTEGER,            -- the payload is gone, the id stays
    payload             BLOB,               -- NULL: it is long, or scrubbed
    named               INTEGER NOT NULL DEFAULT 1 CHECK (named IN (0, 1)), -- 0: client_message_id is id, as text
    sorted              INTEGER NOT NULL DEFAULT 1 CHECK (sorted IN (0, 1)), -- 0: no courier has looked at it yet
    -- A state carries its data.
    CHECK (status <> 1 OR sorted = 1),
    CHECK (status <> 1 OR (lease_token IS NOT NULL AND lease_until IS NULL AND first_attempt_at IS NOT NULL)),
    CHECK (status = 1 OR (lease_token IS NULL) = (lease_until IS NULL)),
    CHECK (status <> 2 OR (broker_message_id IS NOT NULL AND conversation IS NOT NULL
        AND history_id IS NOT NULL AND accepted_at IS NOT NULL)),
    CHECK ((status = 3) = (dead_reason IS NOT NULL)),
    CHECK ((status = 4) = (aborted_at IS NOT NULL) AND (status = 4) = (aborted_by IS NOT NULL)),
    CHECK ((status > 2) = (outcome IS NOT NULL)),
    CHECK (outcome IS NOT 1 OR first_attempt_at IS NOT NULL),
    CHECK (superseded_by IS NULL OR status = 4),
    CHECK (scrubbed_at IS NULL OR status IN (2, 4))
) STRICT;

-- Where the names lead that callers chose: sixty-four bits of each. Filed late and many at once; two names may share a
-- key, so its row is looked at.
CREATE TABLE outbox_name (
    key INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, seq)
) STRICT, WITHOUT ROWID;

-- How far names are filed: those of all rows up to here are, some behind it; a start reads the rest.
CREATE TABLE outbox_filed (
    upto INTEGER NOT NULL
) STRICT;

-- How far rows are sorted by lane: all up to here are, none behind it.
CREATE TABLE outbox_sorted (
    upto INTEGER NOT NULL
) STRICT;

-- Long bodies apart from their rows: a row is rewritten at every step of its life, a body never.
CREATE TABLE outbox_payload (
    seq     INTEGER PRIMARY KEY REFERENCES outbox (seq),
    payload BLOB NOT NULL
) STRICT;

-- A lane has a row only while its last answer was a refusal.
CREATE TABLE lane (
    sender_member_id BLOB NOT NULL,
    lane             TEXT NOT NULL,
    next_attempt_at  INTEGER NOT NULL,
    gone_since       INTEGER,               -- (b) first of the unknown-destination answers in a row
    PRIMARY KEY (sender_member_id, lane)
) STRICT, WITHOUT ROWID;

-- What arrived, once per (sender, id, recipient). Rows are never deleted.
CREATE TABLE inbox (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    sender_member_id    BLOB NOT NULL CHECK (length(sender_member_id) = 16),
    client_message_id   TEXT NOT NULL,
    recipient_member_id BLOB NOT NULL CHECK (length(recipient_member_id) = 16),
    broker_message_id   BLOB NOT NULL CHECK (length(broker_message_id) = 16),
    conversation        BLOB NOT NULL CHECK (length(conversation) = 16),
    history_id          INTEGER NOT NULL,
    deliver_by          INTEGER,            -- (b)
    received_at         INTEGER NOT NULL,
    rung                INTEGER NOT NULL CHECK (rung BETWEEN 4 AND 7),
    rung_at             INTEGER NOT NULL,
    rung_confirmed      INTEGER NOT NULL DEFAULT 0 CHECK (rung_confirmed BETWEEN 0 AND 7),
    notified_at         INTEGER,
    read_at             INTEGER,
    redelivered         INTEGER NOT NULL CHECK (redelivered IN (0, 1)),
    scrubbed_at         INTEGER,            -- the envelope is gone, the id stays
    priority            INTEGER NOT NULL DEFAULT 1 CHECK (priority BETWEEN 0 AND 2),
    turn                INTEGER NOT NULL DEFAULT 0 CHECK (turn BETWEEN 0 AND 4),
    UNIQUE (sender_member_id, client_message_id, recipient_member_id)
) STRICT;

CREATE TABLE inbox_envelope (
    seq      INTEGER PRIMARY KEY REFERENCES inbox (seq),
    envelope BLOB NOT NULL
) STRICT;

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

-- Partial, so that rows kept for ever cost nothing once they left a step behind. The column of the condition stands
-- last where the index alone shall answer.
CREATE UNIQUE INDEX outbox_id ON outbox (id);
CREATE INDEX outbox_named ON outbox (seq) WHERE named = 1;
CREATE INDEX outbox_open ON outbox (sender_member_id, lane, seq, status) WHERE status < 2 AND sorted = 1;
CREATE INDEX outbox_passed_by ON outbox (seq, status) WHERE sorted = 0 AND status <> 0;
CREATE INDEX outbox_inflight ON outbox (sender_member_id, lane) WHERE status = 1;
CREATE INDEX outbox_done ON outbox (accepted_at) WHERE status = 2 AND scrubbed_at IS NULL;
CREATE INDEX outbox_dead ON outbox (status, seq) WHERE status = 3;
CREATE INDEX outbox_aborted ON outbox (aborted_at) WHERE status = 4;
CREATE INDEX outbox_held ON outbox (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX outbox_unsettled ON outbox (outcome, seq) WHERE outcome = 1 AND outcome_settled_at IS NULL;
CREATE INDEX outbox_message ON outbox (broker_message_id) WHERE broker_message_id IS NOT NULL;
CREATE UNIQUE INDEX outbox_superseded ON outbox (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX inbox_message ON inbox (broker_message_id, recipient_member_id);
CREATE INDEX inbox_kept ON inbox (recipient_member_id, seq, read_at, scrubbed_at) WHERE scrubbed_at IS NULL;
CREATE INDEX inbox_unconfirmed ON inbox (seq) WHERE rung > rung_confirmed;
-- One open turn per agent.
CREATE UNIQUE INDEX turn_open ON turn (agent_member_id) WHERE state = 0;
-- What waits for a turn: in the order of turns, and by conversation, whose order no priority changes.
CREATE INDEX inbox_turn_next ON inbox (recipient_member_id, priority, seq) WHERE turn IN (0, 2) AND scrubbed_at IS NULL;
CREATE INDEX inbox_turn_line ON inbox (recipient_member_id, conversation, seq) WHERE turn IN (0, 2) AND scrubbed_at IS NULL;
CREATE INDEX inbox_given_up ON inbox (recipient_member_id, seq) WHERE turn = 4;

-- For people: the outbox with words instead of numbers.
CREATE VIEW outbox_text AS
SELECT
    outbox.seq, hex(outbox.id) AS id, hex(outbox.sender_member_id) AS sender_member_id, client_message_id,
    hex(request_fingerprint) AS request_fingerprint, to_asked, outbox.lane, enqueued_at, deliver_by,
    CASE status WHEN 0 THEN 'pending' WHEN 1 THEN 'inflight' WHEN 2 THEN 'done' WHEN 3 THEN 'dead'
        WHEN 4 THEN 'aborted' END AS status,
    attempts, lane.next_attempt_at, first_attempt_at, last_error,
    CASE dead_reason WHEN 0 THEN 'rejected' WHEN 1 THEN 'too_large' WHEN 2 THEN 'fp_conflict'
        WHEN 3 THEN 'max_age' WHEN 4 THEN 'deliver_by' WHEN 5 THEN 'destination_gone'
        WHEN 6 THEN 'revoked' WHEN 7 THEN 'poison' END AS dead_reason,
    CASE outcome WHEN 0 THEN 'not_sent' WHEN 1 THEN 'unknown' WHEN 2 THEN 'not_accepted'
        WHEN 3 THEN 'accepted' END AS outcome,
    outcome_settled_at, hex(broker_message_id) AS broker_message_id, hex(conversation) AS conversation, history_id,
    accepted_at, delivered_at, notified_at, engaged_at, processed_at,
    CASE ended_as WHEN 2 THEN 'expired' WHEN 3 THEN 'dead_letter' END AS ended_as,
    aborted_at,
    CASE aborted_by WHEN 0 THEN 'operator' WHEN 1 THEN 'session' WHEN 2 THEN 'policy' END AS aborted_by,
    hex(superseded_by) AS superseded_by, late_ack_at, scrubbed_at
FROM outbox LEFT JOIN lane ON status = 0 AND lane.sender_member_id = outbox.sender_member_id AND lane.lane = outbox.lane;

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
