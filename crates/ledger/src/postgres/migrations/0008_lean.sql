-- Numbers of messages come from a sequence here, which never goes back, and ids are found by their time.
-- Pushed rows that wait and those that were given up, in one index: every one has a say in every row that is written.
DROP INDEX delivery_push;
DROP INDEX delivery_parked;
CREATE INDEX delivery_push ON delivery (recipient, rung, push_conversation, message)
    WHERE push_conversation IS NOT NULL AND (rung = 1 OR rung = 3);
