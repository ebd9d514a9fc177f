-- The version that this relay's own writes left behind, of each resource of a kind over which a batch waits: a batch that
-- the upstream refuses for these versions alone clashes with nothing that another wrote.
CREATE TABLE envelope_left (
    order_key TEXT PRIMARY KEY,
    scope     TEXT NOT NULL,
    tag       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
