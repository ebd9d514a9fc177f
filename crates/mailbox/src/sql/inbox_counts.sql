SELECT recipient_member_id, count(*) AS total, count(*) - count(read_at) AS unread
FROM inbox INDEXED BY inbox_kept WHERE scrubbed_at IS NULL GROUP BY recipient_member_id
