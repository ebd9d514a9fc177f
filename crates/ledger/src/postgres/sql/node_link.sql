SELECT n.number, n.link_epoch, n.redelivered_upto, n.inbox_epoch, n.removed_at, coalesce(i.received_upto, 0), i.went_back_at,
    i.went_back_from, i.went_back_to
FROM node n LEFT JOIN inbox_mark i ON i.node = n.number
WHERE n.name = $1
