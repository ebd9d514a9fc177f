-- Of all messages of a batch, in the order of the key. Whoever the broker hosts has it at once, unless it is pushed.
-- OR FAIL: a conflict undoes the whole batch anyway, and without it SQLite would keep a copy of every page for this
-- statement alone.
INSERT OR FAIL INTO delivery (message, recipient, sender, rung, rung_told, delivered_at, push_conversation)
SELECT m.number, s.member, m.sender, iif(r.home IS NULL AND r.pushed = 0, 4, 1), NULL,
    iif(r.home IS NULL AND r.pushed = 0, m.ts_us, NULL), iif(r.pushed = 1, m.conversation, NULL)
FROM message m CROSS JOIN subscription s CROSS JOIN member r
WHERE m.number BETWEEN ?1 AND ?2 AND s.conversation = m.conversation AND s.member <> m.sender AND r.number = s.member
