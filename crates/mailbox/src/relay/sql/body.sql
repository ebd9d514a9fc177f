SELECT coalesce(envelope.body, apart.body) AS body, apart.theirs, apart.base
FROM envelope LEFT JOIN envelope_body AS apart ON apart.local_seq = envelope.local_seq
WHERE envelope.local_seq = :seq AND coalesce(envelope.body, apart.body) IS NOT NULL
