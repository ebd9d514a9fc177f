UPDATE conversation c SET head_seq = g.seq, head_ts_us = g.ts, awaiting_seq = g.awaiting_seq,
    awaiting_by = g.awaiting_by, awaiting_rev = g.awaiting_rev
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS g (number, seq, ts, awaiting_seq, awaiting_by, awaiting_rev)
WHERE c.number = g.number
