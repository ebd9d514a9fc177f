-- Of all messages of a batch, in the order of the key, for subscribers at a node: the plain case, in as few steps a row
-- as there can be. Whoever has it at once or is pushed to is served by delivery_to_hosted.
-- OR FAIL: a conflict undoes the whole batch anyway, and without it SQLite would keep a copy of every page for this
-- statement alone.
INSERT OR FAIL INTO delivery (message, recipient, sender, rung)
SELECT m.number, s.member, m.sender, 1
FROM message m CROSS JOIN subscription s CROSS JOIN member r
WHERE m.number BETWEEN ?1 AND ?2 AND s.conversation = m.conversation AND s.member <> m.sender AND r.number = s.member
    AND r.home IS NOT NULL AND r.pushed = 0
