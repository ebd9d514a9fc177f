-- A member the broker hosts has its mail at once, except one with a webhook: it has what its endpoint took.
ALTER TABLE member ADD COLUMN pushed BOOLEAN NOT NULL DEFAULT false;

-- The log whose order a pushed row keeps; NULL: the row is not pushed.
ALTER TABLE delivery ADD COLUMN push_conversation BIGINT;
CREATE INDEX delivery_push ON delivery (recipient, push_conversation, message)
    WHERE rung = 1 AND push_conversation IS NOT NULL;
CREATE INDEX delivery_parked ON delivery (recipient) WHERE rung = 3 AND push_conversation IS NOT NULL;

CREATE TABLE webhook (
    member BIGINT PRIMARY KEY REFERENCES member (number),
    url TEXT NOT NULL,
    secret BYTEA NOT NULL CHECK (length(secret) = 32),
    old_secret BYTEA CHECK (length(old_secret) = 32),
    old_secret_until BIGINT,
    created_at BIGINT NOT NULL,
    served_at BIGINT NOT NULL DEFAULT 0, -- the last claim: who waited longest is served first
    disabled_at BIGINT,
    disabled_reason TEXT,
    CHECK ((old_secret IS NULL) = (old_secret_until IS NULL)),
    CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
);

-- A log's oldest undelivered row for a webhook, once it was tried; gone when it is delivered or given up.
CREATE TABLE webhook_call (
    member BIGINT NOT NULL REFERENCES webhook (member),
    conversation BIGINT NOT NULL,
    message BIGINT NOT NULL,
    attempts BIGINT NOT NULL CHECK (attempts > 0),
    next_attempt_at BIGINT NOT NULL, -- of a claimed one: when its claim lapses
    lease_token BYTEA CHECK (length(lease_token) = 16), -- NULL: not claimed
    last_answer TEXT,
    PRIMARY KEY (member, conversation)
);
