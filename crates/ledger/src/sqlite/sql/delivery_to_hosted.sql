-- Of all messages of a batch: whoever the broker hosts has it at once, unless it is pushed.
INSERT OR FAIL INTO delivery (message, recipient, sender, rung, delivered_at, push_conversation)
SELECT m.number, s.member, m.sender, iif(r.pushed = 1, 1, 4), iif(r.pushed = 1, NULL, m.ts_us),
    iif(r.pushed = 1, m.conversation, NULL)
FROM message m CROSS JOIN subscription s CROSS JOIN member r
WHERE m.number BETWEEN ?1 AND ?2 AND s.conversation = m.conversation AND s.member <> m.sender AND r.number = s.member
    AND (r.home IS NULL OR r.pushed = 1)
