-- Instants are microseconds since 1970. Members, nodes, conversations and messages have a small number
-- inside and an id outside: hot rows and indexes carry numbers.

CREATE TABLE mesh (
    number SMALLINT PRIMARY KEY CHECK (number = 1),
    id UUID NOT NULL,
    slug TEXT NOT NULL,
    topics SMALLINT NOT NULL CHECK (topics IN (0, 1)),
    dedupe_days INTEGER CHECK (dedupe_days >= 7), -- NULL: for ever
    conn_policy SMALLINT NOT NULL CHECK (conn_policy IN (0, 1)),
    deliver_by_swept_at BIGINT NOT NULL DEFAULT 0, -- rows with an earlier deliver_by were ended
    created_at BIGINT NOT NULL
);

CREATE TABLE issuer (
    key_id SMALLINT PRIMARY KEY CHECK (key_id = 1),
    secret BYTEA NOT NULL CHECK (length(secret) = 32),
    created_at BIGINT NOT NULL
);

CREATE TABLE node (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    public_key BYTEA NOT NULL UNIQUE CHECK (length(public_key) = 32),
    link_epoch BIGINT NOT NULL,
    inbox_epoch TEXT,
    redelivered_upto BIGINT NOT NULL DEFAULT 0, -- messages up to this number may have been in a lost inbox
    joined_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    removed_at BIGINT
);

CREATE TABLE member (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    name TEXT COLLATE "C" NOT NULL UNIQUE, -- of removed members too: a name is never given to another
    kind SMALLINT NOT NULL CHECK (kind IN (0, 1, 2)),
    home BIGINT REFERENCES node (number), -- NULL: hosted by the broker
    role SMALLINT NOT NULL CHECK (role IN (0, 1)),
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    pushed BOOLEAN NOT NULL DEFAULT false -- its mail goes to a webhook
);
CREATE INDEX member_home ON member (home) WHERE home IS NOT NULL;
-- A node has one person, so that its key is an address.
CREATE UNIQUE INDEX member_person ON member (home) WHERE kind = 0 AND home IS NOT NULL;

CREATE TABLE api_token (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    member BIGINT NOT NULL REFERENCES member (number),
    scopes SMALLINT NOT NULL CHECK (scopes BETWEEN 0 AND 7),
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE TABLE invite (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    expected_node TEXT,
    role SMALLINT NOT NULL CHECK (role IN (0, 1)),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE challenge (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    node BIGINT NOT NULL REFERENCES node (number),
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);

CREATE TABLE nonce (
    value BYTEA PRIMARY KEY CHECK (length(value) = 32),
    until BIGINT NOT NULL
);

CREATE TABLE ticket (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    invite BYTEA REFERENCES invite (hash), -- NULL: exchanged for a challenge
    node TEXT NOT NULL,
    public_key BYTEA NOT NULL CHECK (length(public_key) = 32),
    aud TEXT NOT NULL,
    person TEXT, -- the name a first join makes its person from
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX ticket_invite ON ticket (invite) WHERE invite IS NOT NULL;

CREATE TABLE conversation (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    kind SMALLINT NOT NULL CHECK (kind IN (0, 1)),
    topic TEXT COLLATE "C" UNIQUE,
    lo BIGINT REFERENCES member (number),
    hi BIGINT REFERENCES member (number),
    head_seq BIGINT NOT NULL DEFAULT 0,
    head_ts_us BIGINT NOT NULL DEFAULT 0,
    floor_seq BIGINT NOT NULL DEFAULT 0, -- the last pruned row, kept so that a cursor on it can be told from a lost one
    floor_ts_us BIGINT NOT NULL DEFAULT 0,
    floor_id UUID,
    epoch BIGINT NOT NULL DEFAULT 0,
    state SMALLINT NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),
    awaiting_seq BIGINT, -- the question it waits on
    awaiting_by BIGINT,
    awaiting_rev BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    paused BOOLEAN NOT NULL DEFAULT false, -- it still takes messages; nobody works on it
    CHECK ((kind = 0) = (topic IS NOT NULL)),
    CHECK ((kind = 1) = (lo IS NOT NULL AND hi IS NOT NULL)),
    CHECK (lo <= hi),
    UNIQUE (lo, hi)
) WITH (fillfactor = 50); -- its head moves with every message: room for the next version on the same page
CREATE INDEX conversation_hi ON conversation (hi) WHERE hi IS NOT NULL;
CREATE INDEX conversation_awaiting ON conversation (number) WHERE awaiting_seq IS NOT NULL;

CREATE TABLE subscription (
    conversation BIGINT NOT NULL REFERENCES conversation (number),
    member BIGINT NOT NULL REFERENCES member (number),
    since BIGINT NOT NULL,
    PRIMARY KEY (conversation, member)
);
CREATE INDEX subscription_member ON subscription (member);

-- Numbers are drawn under the conversation's lock, so per conversation they rise with seq.
CREATE TABLE message (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    id UUID NOT NULL UNIQUE,
    ts_us BIGINT NOT NULL,
    sender BIGINT NOT NULL,
    client_message_id TEXT COLLATE "C" NOT NULL, -- no unique index: the dedupe row is the only authority
    envelope BYTEA NOT NULL,
    deliver_by BIGINT,
    dedupe_until BIGINT, -- NULL: for ever
    UNIQUE (conversation, seq)
);
CREATE INDEX message_deliver_by ON message (deliver_by) WHERE deliver_by IS NOT NULL;

-- Keyed by id before sender: ids that are minted in the order of time, by whomever, go to the end of one tree.
CREATE TABLE dedupe (
    mesh SMALLINT NOT NULL CHECK (mesh = 1),
    sender_member_id BIGINT NOT NULL,
    client_message_id TEXT COLLATE "C" NOT NULL,
    state SMALLINT NOT NULL CHECK (state IN (0, 1)),
    request_fingerprint BYTEA NOT NULL CHECK (length(request_fingerprint) = 32),
    broker_message_id UUID,
    conversation BIGINT,
    history_id BIGINT,
    destination_kind SMALLINT CHECK (destination_kind IN (0, 1)),
    destination_ref TEXT,
    first_seen_at BIGINT NOT NULL,
    expires_at BIGINT, -- NULL: for ever
    history_available BOOLEAN NOT NULL,
    PRIMARY KEY (client_message_id, sender_member_id, mesh),
    CHECK ((state = 0) = (broker_message_id IS NOT NULL AND conversation IS NOT NULL AND history_id IS NOT NULL
        AND destination_kind IS NOT NULL AND destination_ref IS NOT NULL))
);
CREATE INDEX dedupe_expires ON dedupe (expires_at) WHERE expires_at IS NOT NULL;
-- A message that is kept leads to its dedupe row by sender and id; one that was pruned only by this.
CREATE INDEX dedupe_pruned ON dedupe (broker_message_id) WHERE NOT history_available AND broker_message_id IS NOT NULL;

-- Keyed by message number, which is drawn under the conversation's lock: per conversation its order is seq order.
CREATE TABLE delivery (
    message BIGINT NOT NULL,
    recipient BIGINT NOT NULL,
    sender BIGINT NOT NULL,
    rung SMALLINT NOT NULL CHECK (rung BETWEEN 1 AND 7),
    rung_told SMALLINT CHECK (rung_told BETWEEN 1 AND 7), -- NULL: senders of topic messages are not told
    delivered_at BIGINT,
    notified_at BIGINT,
    engaged_at BIGINT,
    processed_at BIGINT,
    ended_at BIGINT,
    ended_code TEXT,
    read_at BIGINT,
    push_conversation BIGINT, -- the log whose order a pushed row keeps; NULL: the row is not pushed
    stretch BIGINT, -- the first number of where it waited; NULL: it never did
    received_as BIGINT, -- its place in the recipient's inbox; NULL: not told
    again SMALLINT CHECK (again = 1), -- 1: the inbox may lack it, so it is sent again
    PRIMARY KEY (message, recipient)
);
CREATE INDEX delivery_receipt ON delivery (sender, message) WHERE rung > rung_told;
CREATE INDEX delivery_again ON delivery (recipient, message) WHERE again = 1;

-- Where a recipient's undelivered rows are: in a stretch of numbers that were given together, which their rows name.
CREATE TABLE mail (
    recipient BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL CHECK (last >= first),
    PRIMARY KEY (recipient, first)
);

CREATE INDEX delivery_push ON delivery (recipient, rung, push_conversation, message)
    WHERE push_conversation IS NOT NULL AND (rung = 1 OR rung = 3);

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

CREATE TABLE mention_index (
    member BIGINT NOT NULL,
    message BIGINT NOT NULL,
    PRIMARY KEY (member, message)
);
CREATE INDEX mention_message ON mention_index (message);

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

-- Messages that are kept longer than their id: the way from the id to them, once its dedupe row was forgotten.
CREATE TABLE outlived (
    client_message_id TEXT COLLATE "C" NOT NULL,
    message BIGINT NOT NULL,
    PRIMARY KEY (client_message_id, message)
);

-- What was seen of the store's clock: whatever ends by age, ends by borne_out_at and not by the clock's word.
CREATE TABLE ageing (
    number SMALLINT PRIMARY KEY CHECK (number = 1),
    borne_out_at BIGINT NOT NULL, -- the clock as far as time that was seen to pass bears it out
    reached_at BIGINT NOT NULL, -- the latest that ever was
    doubted_since BIGINT, -- borne_out_at when the clock was first seen to stand ahead of it
    doubted_least BIGINT, -- the least it stood ahead since, in microseconds
    ids_tried_upto BIGINT, -- no forgotten id was first tried after it; NULL: none was forgotten
    ids_deadline_upto BIGINT, -- no copy of a forgotten id has a later send deadline
    keys_made_upto BIGINT, -- no forgotten key of the hub was first used after it
    CHECK ((doubted_since IS NULL) = (doubted_least IS NULL))
);

-- What a node has of its mail, as it says: so an inbox that went back to an older copy is noticed, and what it lacks is
-- sent again. Apart from the node, whose row every link's transaction holds.
CREATE TABLE inbox_mark (
    node BIGINT PRIMARY KEY REFERENCES node (number),
    received_upto BIGINT NOT NULL, -- the highest place of its inbox that the node told
    went_back_at BIGINT, -- when that inbox was last found older than it had been
    went_back_from BIGINT, -- the highest place told before
    went_back_to BIGINT -- the highest place it had then
);

-- Each time these books were found older than what a node, or the mark beside the file, knew of them.
CREATE TABLE went_back (
    noticed_at BIGINT PRIMARY KEY,
    ends_at BIGINT NOT NULL, -- the last thing the older books hold
    upto BIGINT NOT NULL, -- what was accepted between both is lost unless its sender sends it again
    noticed_by TEXT NOT NULL
);

CREATE VIEW dedupe_text AS
SELECT sender_member_id, client_message_id, CASE state WHEN 0 THEN 'accepted' WHEN 1 THEN 'retired' END AS state,
    encode(request_fingerprint, 'hex') AS request_fingerprint, broker_message_id::text AS broker_message_id,
    conversation, history_id, CASE destination_kind WHEN 0 THEN 'topic' WHEN 1 THEN 'dm' END AS destination_kind,
    destination_ref, first_seen_at, expires_at, history_available
FROM dedupe;

CREATE VIEW delivery_text AS
SELECT message, recipient, sender,
    CASE rung WHEN 1 THEN 'accepted' WHEN 2 THEN 'expired' WHEN 3 THEN 'dead_letter' WHEN 4 THEN 'delivered'
        WHEN 5 THEN 'notified' WHEN 6 THEN 'engaged' WHEN 7 THEN 'processed' END AS rung,
    CASE rung_told WHEN 1 THEN 'accepted' WHEN 2 THEN 'expired' WHEN 3 THEN 'dead_letter' WHEN 4 THEN 'delivered'
        WHEN 5 THEN 'notified' WHEN 6 THEN 'engaged' WHEN 7 THEN 'processed' END AS rung_told,
    delivered_at, notified_at, engaged_at, processed_at, ended_at, ended_code, read_at
FROM delivery;
