SELECT status, outcome, count(*) AS rows, sum(body_bytes) AS bytes, min(queued_at) AS oldest FROM envelope
GROUP BY status, outcome
