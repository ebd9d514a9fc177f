SELECT upto, (SELECT max(local_seq) FROM envelope) AS last FROM envelope_sorted
