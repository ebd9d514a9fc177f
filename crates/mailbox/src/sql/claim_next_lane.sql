-- Two seeks: a comparison of pairs would begin with the lane's own rows, and read all that wait there to get behind them.
SELECT sender_member_id, lane FROM (
    SELECT sender_member_id, lane FROM outbox
    WHERE status < 2 AND sorted = 1 AND sender_member_id = :sender AND lane > :lane
    ORDER BY lane LIMIT 1)
UNION ALL
SELECT sender_member_id, lane FROM (
    SELECT sender_member_id, lane FROM outbox
    WHERE status < 2 AND sorted = 1 AND sender_member_id > :sender
    ORDER BY sender_member_id, lane LIMIT 1)
LIMIT 1
