-- A paused conversation still takes messages; nobody works on it.
ALTER TABLE conversation ADD COLUMN paused BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX conversation_awaiting ON conversation (number) WHERE awaiting_seq IS NOT NULL;

-- Every change of what a conversation waits on, written with the message that made it.
CREATE TABLE escalation (
    conversation BIGINT NOT NULL REFERENCES conversation (number),
    rev BIGINT NOT NULL,
    seq BIGINT, -- the question; NULL: it waits no more
    asked_by BIGINT,
    at BIGINT NOT NULL,
    PRIMARY KEY (conversation, rev),
    CHECK ((seq IS NULL) = (asked_by IS NULL))
);
CREATE INDEX escalation_at ON escalation (at);

-- How far a member has read a conversation.
CREATE TABLE read_mark (
    member BIGINT NOT NULL REFERENCES member (number),
    conversation BIGINT NOT NULL REFERENCES conversation (number),
    seq BIGINT NOT NULL,
    PRIMARY KEY (member, conversation)
);

-- A link with which a browser signs in, once.
CREATE TABLE sign_in (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    member BIGINT NOT NULL REFERENCES member (number),
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);

CREATE TABLE session (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    member BIGINT NOT NULL REFERENCES member (number),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT
);

-- Opens one socket for the bearer of a credential: a session or an API token.
CREATE TABLE socket_ticket (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    credential BYTEA NOT NULL CHECK (length(credential) = 32),
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
