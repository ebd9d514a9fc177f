-- Where a recipient's undelivered rows are: from one that waits to another message for it, with few for others in
-- between. Mail that comes together, or soon after, is one row; an index would have one for each message.
CREATE TABLE mail (
    recipient INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL CHECK (last >= first),
    PRIMARY KEY (recipient, first)
) STRICT, WITHOUT ROWID;
INSERT INTO mail (recipient, first, last) SELECT recipient, message, message FROM delivery WHERE rung = 1;
DROP INDEX delivery_mail;
