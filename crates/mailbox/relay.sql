-- The tables of relay/outbox.db after all migrations. Instants are integer microseconds of this host's clock;
-- created_at is the upstream's. place: where it stands in its order; a successor takes its predecessor's.
-- ending: how it will end once the upstream was asked about its key.

CREATE TABLE meta (
    k TEXT PRIMARY KEY,
    v TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE UNIQUE INDEX envelope_own_id ON envelope (envelope_id) WHERE named = 1;
CREATE INDEX envelope_key ON envelope (order_key, place, local_seq) WHERE status < 2 AND sorted = 1;
CREATE INDEX envelope_barrier ON envelope (scope, place, local_seq) WHERE status < 2 AND barrier = 1;
CREATE INDEX envelope_queued ON envelope (place, local_seq) WHERE status = 0 AND sorted = 1;
CREATE INDEX envelope_review ON envelope (status, scope) WHERE status > 2;
CREATE INDEX envelope_done ON envelope (ended_at) WHERE status = 2;
CREATE INDEX envelope_inflight ON envelope (lease_until) WHERE status = 1;
CREATE INDEX envelope_age ON envelope (queued_at) WHERE status = 0 AND ending IS NULL AND sorted = 1;
CREATE INDEX envelope_ending ON envelope (place, local_seq) WHERE status = 0 AND ending IS NOT NULL;

-- How far writes are sorted: all up to here are.
CREATE TABLE envelope_sorted (
    upto INTEGER NOT NULL
) STRICT;

CREATE TABLE envelope_body (
    local_seq INTEGER PRIMARY KEY,
    body      BLOB NOT NULL,
    theirs    BLOB,
    base      BLOB
) STRICT;

-- The version that this relay's own writes left behind, of each resource of a kind over which a batch waits.
CREATE TABLE envelope_left (
    order_key TEXT PRIMARY KEY,
    scope     TEXT NOT NULL,
    tag       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW envelope_text AS SELECT
    local_seq, idempotency_key, method, path, order_key, queued_at, attempts, last_error,
    CASE status WHEN 0 THEN 'queued' WHEN 1 THEN 'inflight' WHEN 2 THEN 'done' WHEN 3 THEN 'conflict'
        WHEN 4 THEN 'rejected' WHEN 5 THEN 'expired' WHEN 6 THEN 'cancelled' WHEN 7 THEN 'superseded' END AS status,
    CASE outcome WHEN 0 THEN 'not_sent' WHEN 1 THEN 'unknown' WHEN 2 THEN 'committed'
        WHEN 3 THEN 'not_committed' END AS outcome,
    CASE ending WHEN 3 THEN 'conflict' WHEN 4 THEN 'rejected' WHEN 5 THEN 'expired'
        WHEN 6 THEN 'cancelled' END AS ending
FROM envelope;
