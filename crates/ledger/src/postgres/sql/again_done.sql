UPDATE delivery d SET again = NULL FROM unnest($1::bigint[], $2::bigint[]) AS g (message, recipient)
WHERE d.message = g.message AND d.recipient = g.recipient AND d.again = 1
