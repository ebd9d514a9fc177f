-- Waiting writes to what a write has just changed go under the state it left, unless their caller named a condition. A
-- successor stands before writes that came earlier than it: those were not asked on what it made.
UPDATE envelope SET precondition = :precondition
WHERE status = 0 AND sorted = 1 AND order_key = :order_key AND route_class = 1 AND base_envelope IS NOT NULL
    AND (outcome = 0 OR sent_precondition IS NULL) AND local_seq > :seq
