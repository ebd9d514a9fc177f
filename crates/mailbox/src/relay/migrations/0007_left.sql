-- The version that this relay's own writes left behind, of each resource of a kind over which a batch waits: a batch that
-- the upstream refuses for these versions alone clashes with nothing that another wrote.
CREATE TABLE envelope_left (
    order_key TEXT PRIMARY KEY,
    scope     TEXT NOT NULL,
    tag       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A live write that the upstream refused is forgotten at once: its caller has the upstream's own answer.
DELETE FROM envelope_body WHERE local_seq IN (SELECT local_seq FROM envelope WHERE told = 1 AND status < 2);
DELETE FROM envelope WHERE told = 1 AND status < 2;
ALTER TABLE envelope DROP COLUMN told;
