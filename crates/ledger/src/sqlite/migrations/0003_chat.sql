-- A paused conversation still takes messages; nobody works on it.
ALTER TABLE conversation ADD COLUMN paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1));
CREATE INDEX conversation_awaiting ON conversation (number) WHERE awaiting_seq IS NOT NULL;

-- Every change of what a conversation waits on, written with the message that made it.
CREATE TABLE escalation (
    conversation INTEGER NOT NULL REFERENCES conversation (number),
    rev INTEGER NOT NULL,
    seq INTEGER, -- the question; NULL: it waits no more
    asked_by INTEGER,
    at INTEGER NOT NULL,
    PRIMARY KEY (conversation, rev),
    CHECK ((seq IS NULL) = (asked_by IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX escalation_at ON escalation (at);

-- How far a member has read a conversation.
CREATE TABLE read_mark (
    member INTEGER NOT NULL REFERENCES member (number),
    conversation INTEGER NOT NULL REFERENCES conversation (number),
    seq INTEGER NOT NULL,
    PRIMARY KEY (member, conversation)
) STRICT, WITHOUT ROWID;

-- A link with which a browser signs in, once.
CREATE TABLE sign_in (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    member INTEGER NOT NULL REFERENCES member (number),
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    member INTEGER NOT NULL REFERENCES member (number),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER
) STRICT, WITHOUT ROWID;

-- Opens one socket for the bearer of a credential: a session or an API token.
CREATE TABLE socket_ticket (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    credential BLOB NOT NULL CHECK (length(credential) = 32),
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT, WITHOUT ROWID;
