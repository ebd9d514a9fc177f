-- From log to log by the index, so that the rows behind a log's oldest cost nothing.
WITH RECURSIVE head (member, conversation) AS (
    SELECT w.member, (SELECT min(d.push_conversation) FROM delivery d
        WHERE d.recipient = w.member AND d.rung = 1 AND d.push_conversation IS NOT NULL)
    FROM webhook w WHERE w.disabled_at IS NULL AND ($2::bigint IS NULL OR w.member = $2)
    UNION ALL
    SELECT h.member, (SELECT min(d.push_conversation) FROM delivery d
        WHERE d.recipient = h.member AND d.rung = 1 AND d.push_conversation > h.conversation)
    FROM head h WHERE h.conversation IS NOT NULL
), oldest (member, conversation, message) AS (
    SELECT h.member, h.conversation, (SELECT min(d.message) FROM delivery d
        WHERE d.recipient = h.member AND d.rung = 1 AND d.push_conversation = h.conversation)
    FROM head h WHERE h.conversation IS NOT NULL
)
SELECT o.member, o.conversation
FROM oldest o JOIN webhook w ON w.member = o.member
LEFT JOIN webhook_call c ON c.member = o.member AND c.conversation = o.conversation
-- A call about a row that ended meanwhile delays nobody, unless it is under way.
WHERE c.member IS NULL OR c.next_attempt_at <= $1 OR (c.message <> o.message AND c.lease_token IS NULL)
ORDER BY w.served_at, o.member, o.message
