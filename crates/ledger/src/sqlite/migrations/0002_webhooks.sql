-- A member the broker hosts has its mail at once, except one with a webhook: it has what its endpoint took.
ALTER TABLE member ADD COLUMN pushed INTEGER NOT NULL DEFAULT 0 CHECK (pushed IN (0, 1));

-- The log whose order a pushed row keeps; NULL: the row is not pushed.
ALTER TABLE delivery ADD COLUMN push_conversation INTEGER;
CREATE INDEX delivery_push ON delivery (recipient, push_conversation, message)
    WHERE rung = 1 AND push_conversation IS NOT NULL;
CREATE INDEX delivery_parked ON delivery (recipient) WHERE rung = 3 AND push_conversation IS NOT NULL;

CREATE TABLE webhook (
    member INTEGER PRIMARY KEY REFERENCES member (number),
    url TEXT NOT NULL,
    secret BLOB NOT NULL CHECK (length(secret) = 32),
    old_secret BLOB CHECK (length(old_secret) = 32),
    old_secret_until INTEGER,
    created_at INTEGER NOT NULL,
    served_at INTEGER NOT NULL DEFAULT 0, -- the last claim: who waited longest is served first
    disabled_at INTEGER,
    disabled_reason TEXT,
    CHECK ((old_secret IS NULL) = (old_secret_until IS NULL)),
    CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
) STRICT;

-- A log's oldest undelivered row for a webhook, once it was tried; gone when it is delivered or given up.
CREATE TABLE webhook_call (
    member INTEGER NOT NULL REFERENCES webhook (member),
    conversation INTEGER NOT NULL,
    message INTEGER NOT NULL,
    attempts INTEGER NOT NULL CHECK (attempts > 0),
    next_attempt_at INTEGER NOT NULL, -- of a claimed one: when its claim lapses
    lease_token BLOB CHECK (length(lease_token) = 16), -- NULL: not claimed
    last_answer TEXT,
    PRIMARY KEY (member, conversation)
) STRICT, WITHOUT ROWID;
