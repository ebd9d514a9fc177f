-- What is not sorted yet is the newest.
SELECT seq FROM (
    SELECT seq FROM outbox
    WHERE seq > (SELECT upto FROM outbox_sorted) AND seq < :before AND status = :status
        AND sender_member_id = coalesce(:sender, sender_member_id)
    ORDER BY seq DESC LIMIT :limit)
UNION ALL
SELECT seq FROM (
    SELECT seq FROM outbox INDEXED BY outbox_open
    WHERE status < 2 AND sorted = 1 AND status = :status AND seq < :before
        AND sender_member_id = coalesce(:sender, sender_member_id)
    ORDER BY seq DESC LIMIT :limit)
LIMIT :limit
