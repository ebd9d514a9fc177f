-- The last change of each kind of record: its row is the lock under which a change takes its place.
CREATE TABLE hub_head (
    kind SMALLINT PRIMARY KEY,
    seq BIGINT NOT NULL
);
INSERT INTO hub_head (kind, seq) VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);

CREATE TABLE hub_record (
    kind SMALLINT NOT NULL REFERENCES hub_head (kind),
    id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0), -- goes on rising after a deletion
    seq BIGINT NOT NULL,
    body BYTEA, -- NULL: deleted
    created_by BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_by BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (kind, id),
    UNIQUE (kind, seq)
);

-- A record in state stored exists exactly when its effect committed.
CREATE TABLE idem (
    principal BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    state SMALLINT NOT NULL CHECK (state IN (0, 1)), -- stored, retired
    method TEXT,
    path TEXT,
    fingerprint BYTEA CHECK (length(fingerprint) = 32),
    status SMALLINT,
    etag TEXT,
    body BYTEA,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (principal, key),
    CHECK ((state = 0) = (fingerprint IS NOT NULL AND status IS NOT NULL AND body IS NOT NULL))
);
CREATE INDEX idem_expires ON idem (expires_at);
