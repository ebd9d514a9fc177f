-- The first instant of a rung stands. A copy that arrived after all did not end.
UPDATE delivery SET rung = ?3, delivered_at = coalesce(delivered_at, ?4), notified_at = coalesce(notified_at, ?5),
    engaged_at = coalesce(engaged_at, ?6), processed_at = coalesce(processed_at, ?7),
    ended_at = CASE WHEN ?3 >= 4 THEN NULL ELSE coalesce(?8, ended_at) END,
    ended_code = CASE WHEN ?3 >= 4 THEN NULL ELSE coalesce(?9, ended_code) END,
    read_at = coalesce(read_at, ?10), received_as = coalesce(?11, received_as), again = iif(?12, NULL, again)
WHERE message = ?1 AND recipient = ?2 AND rung <= ?3
