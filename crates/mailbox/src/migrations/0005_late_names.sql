-- What callers named is filed late, many at once: such a name wrote a page of its own at every send. Whoever opens the
-- file next files the names that it has.
DROP INDEX outbox_name;
DROP INDEX outbox_id;

CREATE TABLE outbox_name (
    key INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox_filed (
    upto INTEGER NOT NULL
) STRICT;

INSERT INTO outbox_filed (upto) VALUES (0);

CREATE UNIQUE INDEX outbox_id ON outbox (id);
CREATE INDEX outbox_named ON outbox (seq) WHERE named = 1;
