-- Three trees less to write at every send:
-- - A message that its caller did not name is named by its row: one entry finds both. Names come first in their index,
--   so that those which are ordered in time stand together, whoever sends.
-- - No row is ever deleted, so a place is never given twice without a table that says which was the last.
-- - Rows are sorted by lane when a courier looks at them, many at once: each lane has a page of its own, and a commit of
--   many callers wrote one for every lane.
DROP VIEW outbox_text;
DROP INDEX outbox_open;
DROP INDEX outbox_inflight;
DROP INDEX outbox_done;
DROP INDEX outbox_dead;
DROP INDEX outbox_aborted;
DROP INDEX outbox_held;
DROP INDEX outbox_unsettled;
DROP INDEX outbox_message;
DROP INDEX outbox_superseded;
ALTER TABLE outbox RENAME TO outbox_before;
ALTER TABLE outbox_payload RENAME TO outbox_payload_before;

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

INSERT INTO outbox (
    seq, id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane, enqueued_at, deliver_by,
    status, attempts, first_attempt_at, lease_token, lease_until, last_error, dead_reason, outcome,
    outcome_settled_at, broker_message_id, conversation, history_id, accepted_at, delivered_at, notified_at,
    engaged_at, processed_at, ended_as, aborted_at, aborted_by, superseded_by, late_ack_at, scrubbed_at, payload
)
SELECT
    seq, id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane, enqueued_at, deliver_by,
    status, attempts, first_attempt_at, lease_token, lease_until, last_error, dead_reason, outcome,
    outcome_settled_at, broker_message_id, conversation, history_id, accepted_at, delivered_at, notified_at,
    engaged_at, processed_at, ended_as, aborted_at, aborted_by, superseded_by, late_ack_at, scrubbed_at, payload
FROM outbox_before ORDER BY seq;

CREATE TABLE outbox_sorted (
    upto INTEGER NOT NULL
) STRICT;

INSERT INTO outbox_sorted (upto) SELECT coalesce(max(seq), 0) FROM outbox;

CREATE TABLE outbox_payload (
    seq     INTEGER PRIMARY KEY REFERENCES outbox (seq),
    payload BLOB NOT NULL
) STRICT;

INSERT INTO outbox_payload (seq, payload) SELECT seq, payload FROM outbox_payload_before ORDER BY seq;
DROP TABLE outbox_payload_before;
DROP TABLE outbox_before;

CREATE UNIQUE INDEX outbox_name ON outbox (client_message_id, sender_member_id);
CREATE UNIQUE INDEX outbox_id ON outbox (id) WHERE named = 1;
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
