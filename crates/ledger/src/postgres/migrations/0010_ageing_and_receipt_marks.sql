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
ALTER TABLE delivery ADD COLUMN received_as BIGINT; -- its place in the recipient's inbox; NULL: not told
ALTER TABLE delivery ADD COLUMN again SMALLINT CHECK (again = 1); -- 1: the inbox may lack it, so it is sent again
CREATE INDEX delivery_again ON delivery (recipient, message) WHERE again = 1;
-- Each time these books were found older than what a node, or the mark beside the file, knew of them.
CREATE TABLE went_back (
    noticed_at BIGINT PRIMARY KEY,
    ends_at BIGINT NOT NULL, -- the last thing the older books hold
    upto BIGINT NOT NULL, -- what was accepted between both is lost unless its sender sends it again
    noticed_by TEXT NOT NULL
);
