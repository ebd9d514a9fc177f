-- The first instant of a rung stands. A copy that arrived after all did not end.
UPDATE delivery d SET rung = g.rung, delivered_at = coalesce(d.delivered_at, g.delivered_at),
    notified_at = coalesce(d.notified_at, g.notified_at), engaged_at = coalesce(d.engaged_at, g.engaged_at),
    processed_at = coalesce(d.processed_at, g.processed_at),
    ended_at = CASE WHEN g.rung >= 4 THEN NULL ELSE coalesce(g.ended_at, d.ended_at) END,
    ended_code = CASE WHEN g.rung >= 4 THEN NULL ELSE coalesce(g.ended_code, d.ended_code) END,
    read_at = coalesce(d.read_at, g.read_at), received_as = coalesce(g.received_as, d.received_as),
    again = CASE WHEN g.has_it THEN NULL ELSE d.again END
FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::boolean[])
    AS g (message, recipient, rung, delivered_at, notified_at, engaged_at, processed_at, ended_at, ended_code, read_at,
        received_as, has_it)
WHERE d.message = g.message AND d.recipient = g.recipient AND d.rung <= g.rung
