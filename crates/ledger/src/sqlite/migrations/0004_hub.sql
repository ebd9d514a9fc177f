-- The last change of each kind of record: its row is the lock under which a change takes its place.
CREATE TABLE hub_head (
    kind INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT;
INSERT INTO hub_head (kind, seq) VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);

CREATE TABLE hub_record (
    kind INTEGER NOT NULL REFERENCES hub_head (kind),
    id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0), -- goes on rising after a deletion
    seq INTEGER NOT NULL,
    body BLOB, -- NULL: deleted
    created_by INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_by INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id),
    UNIQUE (kind, seq)
) STRICT;

-- A record in state stored exists exactly when its effect committed.
CREATE TABLE idem (
    principal INTEGER NOT NULL,
    key TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (0, 1)), -- stored, retired
    method TEXT,
    path TEXT,
    fingerprint BLOB CHECK (length(fingerprint) = 32),
    status INTEGER,
    etag TEXT,
    body BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (principal, key),
    CHECK ((state = 0) = (fingerprint IS NOT NULL AND status IS NOT NULL AND body IS NOT NULL))
) STRICT;
CREATE INDEX idem_expires ON idem (expires_at);
