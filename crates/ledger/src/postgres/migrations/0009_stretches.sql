-- Where a recipient's undelivered rows are: in a stretch of numbers that were given together, which their rows name. A
-- batch writes one for each recipient and log; the index had an entry for each row, in as many places as recipients.
CREATE TABLE mail (
    recipient BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL CHECK (last >= first),
    PRIMARY KEY (recipient, first)
);
INSERT INTO mail (recipient, first, last) SELECT recipient, message, message FROM delivery WHERE rung = 1;
ALTER TABLE delivery ADD COLUMN stretch BIGINT; -- the first number of where it waited; NULL: it never did
UPDATE delivery SET stretch = message WHERE rung = 1;
DROP INDEX delivery_mail;
