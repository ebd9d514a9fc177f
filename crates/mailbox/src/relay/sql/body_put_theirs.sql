INSERT INTO envelope_body (local_seq, body, theirs)
SELECT envelope.local_seq, coalesce(envelope.body, apart.body), :theirs
FROM envelope LEFT JOIN envelope_body AS apart ON apart.local_seq = envelope.local_seq
WHERE envelope.local_seq = :seq AND coalesce(envelope.body, apart.body) IS NOT NULL
ON CONFLICT (local_seq) DO UPDATE SET theirs = excluded.theirs
