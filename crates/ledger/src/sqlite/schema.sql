-- Instants are microseconds since 1970. Members, nodes, conversations and messages have a small number
-- inside and an id outside: hot rows and indexes carry numbers.

CREATE TABLE mesh (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    id BLOB NOT NULL CHECK (length(id) = 16),
    slug TEXT NOT NULL,
    topics INTEGER NOT NULL CHECK (topics IN (0, 1)),
    dedupe_days INTEGER CHECK (dedupe_days >= 7), -- NULL: for ever
    conn_policy INTEGER NOT NULL CHECK (conn_policy IN (0, 1)),
    deliver_by_swept_at INTEGER NOT NULL DEFAULT 0, -- rows with an earlier deliver_by were ended
    created_at INTEGER NOT NULL,
    numbers_upto INTEGER NOT NULL DEFAULT 0 -- the highest number of a pruned message
) STRICT;

CREATE TABLE issuer (
    key_id INTEGER PRIMARY KEY CHECK (key_id = 1),
    secret BLOB NOT NULL CHECK (length(secret) = 32),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE node (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    public_key BLOB NOT NULL UNIQUE CHECK (length(public_key) = 32),
    link_epoch INTEGER NOT NULL,
    inbox_epoch TEXT,
    redelivered_upto INTEGER NOT NULL DEFAULT 0, -- messages up to this number may have been in a lost inbox
    joined_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    removed_at INTEGER
) STRICT;

CREATE TABLE member (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    name TEXT NOT NULL UNIQUE, -- of removed members too: a name is never given to another
    kind INTEGER NOT NULL CHECK (kind IN (0, 1, 2)),
    home INTEGER REFERENCES node (number), -- NULL: hosted by the broker
    role INTEGER NOT NULL CHECK (role IN (0, 1)),
    created_at INTEGER NOT NULL,
    removed_at INTEGER,
    -- 1: hosted by the broker, yet it has only what its webhook's endpoint took
    pushed INTEGER NOT NULL DEFAULT 0 CHECK (pushed IN (0, 1))
) STRICT;
CREATE INDEX member_home ON member (home) WHERE home IS NOT NULL;
-- A node has one person, so that its key is an address.
CREATE UNIQUE INDEX member_person ON member (home) WHERE kind = 0 AND home IS NOT NULL;

CREATE TABLE api_token (
    number INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    member INTEGER NOT NULL REFERENCES member (number),
    scopes INTEGER NOT NULL CHECK (scopes BETWEEN 0 AND 7),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE invite (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    expected_node TEXT,
    role INTEGER NOT NULL CHECK (role IN (0, 1)),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE challenge (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    node INTEGER NOT NULL REFERENCES node (number),
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE nonce (
    value BLOB PRIMARY KEY CHECK (length(value) = 32),
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ticket (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    invite BLOB REFERENCES invite (hash), -- NULL: exchanged for a challenge
    node TEXT NOT NULL,
    public_key BLOB NOT NULL CHECK (length(public_key) = 32),
    aud TEXT NOT NULL,
    person TEXT, -- the name a first join makes its person from
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX ticket_invite ON ticket (invite) WHERE invite IS NOT NULL;

CREATE TABLE conversation (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    topic TEXT UNIQUE,
    lo INTEGER REFERENCES member (number),
    hi INTEGER REFERENCES member (number),
    head_seq INTEGER NOT NULL DEFAULT 0,
    head_ts_us INTEGER NOT NULL DEFAULT 0,
    floor_seq INTEGER NOT NULL DEFAULT 0, -- the last pruned row, kept so that a cursor on it can be told from a lost one
    floor_ts_us INTEGER NOT NULL DEFAULT 0,
    floor_id BLOB,
    epoch INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),
    awaiting_seq INTEGER, -- the question it waits on
    awaiting_by INTEGER,
    awaiting_rev INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)), -- it still takes messages; nobody works on it
    CHECK ((kind = 0) = (topic IS NOT NULL)),
    CHECK ((kind = 1) = (lo IS NOT NULL AND hi IS NOT NULL)),
    CHECK (lo <= hi),
    UNIQUE (lo, hi)
) STRICT;
CREATE INDEX conversation_hi ON conversation (hi) WHERE hi IS NOT NULL;
CREATE INDEX conversation_awaiting ON conversation (number) WHERE awaiting_seq IS NOT NULL;

CREATE TABLE subscription (
    conversation INTEGER NOT NULL REFERENCES conversation (number),
    member INTEGER NOT NULL REFERENCES member (number),
    since INTEGER NOT NULL,
    PRIMARY KEY (conversation, member)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscription_member ON subscription (member);

-- Numbers are never used twice (mesh.numbers_upto): redelivered_upto compares with them.
CREATE TABLE message (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    ts_us INTEGER NOT NULL,
    sender INTEGER NOT NULL,
    client_message_id TEXT NOT NULL, -- no unique index: the dedupe row is the only authority
    envelope BLOB NOT NULL,
    deliver_by INTEGER,
    dedupe_until INTEGER, -- NULL: for ever
    UNIQUE (conversation, seq)
) STRICT;
CREATE INDEX message_deliver_by ON message (deliver_by) WHERE deliver_by IS NOT NULL;

-- Keyed by id before sender: ids that are minted in the order of time, by whomever, go to the end of one tree.
CREATE TABLE dedupe (
    mesh INTEGER NOT NULL CHECK (mesh = 1),
    sender_member_id INTEGER NOT NULL,
    client_message_id TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (0, 1)),
    request_fingerprint BLOB NOT NULL CHECK (length(request_fingerprint) = 32),
    broker_message_id BLOB CHECK (length(broker_message_id) = 16),
    conversation INTEGER,
    history_id INTEGER,
    destination_kind INTEGER CHECK (destination_kind IN (0, 1)),
    destination_ref TEXT,
    first_seen_at INTEGER NOT NULL,
    expires_at INTEGER, -- NULL: for ever
    history_available INTEGER NOT NULL CHECK (history_available IN (0, 1)),
    PRIMARY KEY (client_message_id, sender_member_id, mesh),
    CHECK ((state = 0) = (broker_message_id IS NOT NULL AND conversation IS NOT NULL AND history_id IS NOT NULL
        AND destination_kind IS NOT NULL AND destination_ref IS NOT NULL))
) STRICT, WITHOUT ROWID;
-- A message that is kept leads to its dedupe row by sender and id; one that was pruned only by this.
CREATE INDEX dedupe_pruned ON dedupe (broker_message_id) WHERE history_available = 0 AND broker_message_id IS NOT NULL;

-- Keyed by message number, which is drawn under the conversation's lock: per conversation its order is seq order.
CREATE TABLE delivery (
    message INTEGER NOT NULL,
    recipient INTEGER NOT NULL,
    sender INTEGER NOT NULL,
    rung INTEGER NOT NULL CHECK (rung BETWEEN 1 AND 7),
    rung_told INTEGER CHECK (rung_told BETWEEN 1 AND 7), -- NULL: senders of topic messages are not told
    delivered_at INTEGER,
    notified_at INTEGER,
    engaged_at INTEGER,
    processed_at INTEGER,
    ended_at INTEGER,
    ended_code TEXT,
    read_at INTEGER,
    push_conversation INTEGER, -- the log whose order a pushed row keeps; NULL: the row is not pushed
    received_as INTEGER, -- its place in the recipient's inbox; NULL: not told
    again INTEGER CHECK (again = 1), -- 1: the inbox may lack it, so it is sent again
    PRIMARY KEY (message, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_receipt ON delivery (sender, message) WHERE rung > rung_told;
CREATE INDEX delivery_again ON delivery (recipient, message) WHERE again = 1;
CREATE INDEX delivery_push ON delivery (recipient, rung, push_conversation, message)
    WHERE push_conversation IS NOT NULL AND (rung = 1 OR rung = 3);

-- Where a recipient's undelivered rows are: from one that waits to another message for it, with few for others in
-- between. Mail that comes together, or soon after, is one row; an index would have one for each message.
CREATE TABLE mail (
    recipient INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL CHECK (last >= first),
    PRIMARY KEY (recipient, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE mention_index (
    member INTEGER NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (member, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX mention_message ON mention_index (message);

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

-- Messages that are kept longer than their id: the way from the id to them, once its dedupe row was forgotten.
CREATE TABLE outlived (
    client_message_id TEXT NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (client_message_id, message)
) STRICT, WITHOUT ROWID;

-- What was seen of the store's clock: whatever ends by age, ends by borne_out_at and not by the clock's word.
CREATE TABLE ageing (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    borne_out_at INTEGER NOT NULL, -- the clock as far as time that was seen to pass bears it out
    reached_at INTEGER NOT NULL, -- the latest that ever was
    doubted_since INTEGER, -- borne_out_at when the clock was first seen to stand ahead of it
    doubted_least INTEGER, -- the least it stood ahead since, in microseconds
    ids_tried_upto INTEGER, -- no forgotten id was first tried after it; NULL: none was forgotten
    ids_deadline_upto INTEGER, -- no copy of a forgotten id has a later send deadline
    keys_made_upto INTEGER, -- no forgotten key of the hub was first used after it
    CHECK ((doubted_since IS NULL) = (doubted_least IS NULL))
) STRICT;

-- What a node has of its mail, as it says: so an inbox that went back to an older copy is noticed, and what it lacks is
-- sent again. Apart from the node, whose row every link's transaction holds.
CREATE TABLE inbox_mark (
    node INTEGER PRIMARY KEY REFERENCES node (number),
    received_upto INTEGER NOT NULL, -- the highest place of its inbox that the node told
    went_back_at INTEGER, -- when that inbox was last found older than it had been
    went_back_from INTEGER, -- the highest place told before
    went_back_to INTEGER -- the highest place it had then
) STRICT;

-- Each time these books were found older than what a node, or the mark beside the file, knew of them.
CREATE TABLE went_back (
    noticed_at INTEGER PRIMARY KEY,
    ends_at INTEGER NOT NULL, -- the last thing the older books hold
    upto INTEGER NOT NULL, -- what was accepted between both is lost unless its sender sends it again
    noticed_by TEXT NOT NULL
) STRICT;

CREATE VIEW dedupe_text AS
SELECT sender_member_id, client_message_id, CASE state WHEN 0 THEN 'accepted' WHEN 1 THEN 'retired' END AS state,
    lower(hex(request_fingerprint)) AS request_fingerprint, lower(hex(broker_message_id)) AS broker_message_id,
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
