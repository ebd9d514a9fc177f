-- Five trees less to write at every receipt:
-- - A write that its caller gave no key is known by its own id: one entry finds both.
-- - A short body stands in its row. A long one stays apart, so that a row which is rewritten at every step of its life
--   does not take it along.
-- - Appends that wait for the upstream are sorted when a drainer looks at them, many at once.
DROP VIEW envelope_text;
DROP INDEX envelope_key;
DROP INDEX envelope_barrier;
DROP INDEX envelope_queued;
DROP INDEX envelope_review;
DROP INDEX envelope_done;
DROP INDEX envelope_inflight;
DROP INDEX envelope_age;
DROP INDEX envelope_ending;
ALTER TABLE envelope RENAME TO envelope_before;

CREATE TABLE envelope (
    local_seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    place                 INTEGER NOT NULL,
    envelope_id           BLOB NOT NULL CHECK (length(envelope_id) = 16),
    idempotency_key       TEXT NOT NULL UNIQUE,
    fingerprint           BLOB NOT NULL CHECK (length(fingerprint) = 32),
    method                TEXT NOT NULL,
    path                  TEXT NOT NULL,
    query                 TEXT,
    route_class           INTEGER NOT NULL CHECK (route_class IN (0, 1)),
    scope                 TEXT NOT NULL,
    order_key             TEXT NOT NULL,
    barrier               INTEGER NOT NULL CHECK (barrier IN (0, 1)),
    precondition          TEXT,
    sent_precondition     TEXT,
    base_envelope         BLOB CHECK (length(base_envelope) = 16),
    source_agent          TEXT,
    source_session        TEXT,
    principal_hint        TEXT,
    upstream_id           TEXT,
    status                INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7),
    outcome               INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 3),
    ending                INTEGER CHECK (ending BETWEEN 3 AND 6),
    told                  INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
    attempts              INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_attempt_at       INTEGER NOT NULL,
    lease_token           BLOB CHECK (length(lease_token) = 16),
    lease_until           INTEGER,
    queued_at             INTEGER NOT NULL,
    created_at            INTEGER NOT NULL,
    first_attempt_at      INTEGER,
    ended_at              INTEGER,
    late_ack_at           INTEGER,
    last_error            TEXT,
    response_status       INTEGER,
    response_etag         TEXT,
    response_code         TEXT,
    response_resource     TEXT,
    theirs_etag           TEXT,
    superseded_by         BLOB CHECK (length(superseded_by) = 16),
    supersedes            BLOB CHECK (length(supersedes) = 16),
    resolution            TEXT,
    possible_duplicate_of BLOB CHECK (length(possible_duplicate_of) = 16),
    body_bytes            INTEGER NOT NULL,
    body                  BLOB,               -- NULL: it is long, or forgotten
    named                 INTEGER NOT NULL DEFAULT 1 CHECK (named IN (0, 1)), -- 0: idempotency_key is envelope_id, as text
    sorted                INTEGER NOT NULL DEFAULT 1 CHECK (sorted IN (0, 1)), -- 0: no drainer has looked at it yet
    CHECK (status <> 1 OR sorted = 1),
    CHECK ((status = 1) = (lease_token IS NOT NULL)),
    CHECK ((lease_token IS NULL) = (lease_until IS NULL)),
    CHECK ((status > 1) = (ended_at IS NOT NULL)),
    CHECK (status <> 2 OR outcome = 2),
    CHECK (ending IS NULL OR status < 2),
    CHECK ((status = 7) = (superseded_by IS NOT NULL)),
    CHECK (route_class = 0 OR precondition IS NOT NULL)
) STRICT;

INSERT INTO envelope (
    local_seq, place, envelope_id, idempotency_key, fingerprint, method, path, query, route_class, scope, order_key,
    barrier, precondition, sent_precondition, base_envelope, source_agent, source_session, principal_hint,
    upstream_id, status, outcome, ending, told, attempts, next_attempt_at, lease_token, lease_until, queued_at,
    created_at, first_attempt_at, ended_at, late_ack_at, last_error, response_status, response_etag, response_code,
    response_resource, theirs_etag, superseded_by, supersedes, resolution, possible_duplicate_of, body_bytes
)
SELECT
    local_seq, place, envelope_id, idempotency_key, fingerprint, method, path, query, route_class, scope, order_key,
    barrier, precondition, sent_precondition, base_envelope, source_agent, source_session, principal_hint,
    upstream_id, status, outcome, ending, told, attempts, next_attempt_at, lease_token, lease_until, queued_at,
    created_at, first_attempt_at, ended_at, late_ack_at, last_error, response_status, response_etag, response_code,
    response_resource, theirs_etag, superseded_by, supersedes, resolution, possible_duplicate_of, body_bytes
FROM envelope_before ORDER BY local_seq;
-- What was given away and trimmed since is not given again.
DELETE FROM sqlite_sequence WHERE name = 'envelope';
INSERT INTO sqlite_sequence (name, seq) SELECT 'envelope', seq FROM sqlite_sequence WHERE name = 'envelope_before';
DROP TABLE envelope_before;

CREATE TABLE envelope_sorted (
    upto INTEGER NOT NULL
) STRICT;

INSERT INTO envelope_sorted (upto) SELECT coalesce(max(local_seq), 0) FROM envelope;

CREATE UNIQUE INDEX envelope_own_id ON envelope (envelope_id) WHERE named = 1;
CREATE INDEX envelope_key ON envelope (order_key, place, local_seq) WHERE status < 2 AND sorted = 1;
CREATE INDEX envelope_barrier ON envelope (scope, place, local_seq) WHERE status < 2 AND barrier = 1;
CREATE INDEX envelope_queued ON envelope (place, local_seq) WHERE status = 0 AND sorted = 1;
CREATE INDEX envelope_review ON envelope (status, scope) WHERE status > 2;
CREATE INDEX envelope_done ON envelope (ended_at) WHERE status = 2;
CREATE INDEX envelope_inflight ON envelope (lease_until) WHERE status = 1;
CREATE INDEX envelope_age ON envelope (queued_at) WHERE status = 0 AND ending IS NULL AND sorted = 1;
CREATE INDEX envelope_ending ON envelope (place, local_seq) WHERE status = 0 AND ending IS NOT NULL;

CREATE VIEW envelope_text AS SELECT
    local_seq, idempotency_key, method, path, order_key, queued_at, attempts, last_error,
    CASE status WHEN 0 THEN 'queued' WHEN 1 THEN 'inflight' WHEN 2 THEN 'done' WHEN 3 THEN 'conflict'
        WHEN 4 THEN 'rejected' WHEN 5 THEN 'expired' WHEN 6 THEN 'cancelled' WHEN 7 THEN 'superseded' END AS status,
    CASE outcome WHEN 0 THEN 'not_sent' WHEN 1 THEN 'unknown' WHEN 2 THEN 'committed'
        WHEN 3 THEN 'not_committed' END AS outcome,
    CASE ending WHEN 3 THEN 'conflict' WHEN 4 THEN 'rejected' WHEN 5 THEN 'expired'
        WHEN 6 THEN 'cancelled' END AS ending
FROM envelope;
