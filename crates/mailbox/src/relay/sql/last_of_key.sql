-- The last unfinished write that overlaps: to the same resource, to all of its kind, or, for a write to all of them, to any.
SELECT envelope_id FROM (
    SELECT * FROM (SELECT place, local_seq, envelope_id FROM envelope
        WHERE status < 2 AND sorted = 1 AND order_key = :order_key ORDER BY place DESC, local_seq DESC LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT place, local_seq, envelope_id FROM envelope
        WHERE status < 2 AND scope = :scope AND barrier = 1 ORDER BY place DESC, local_seq DESC LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT place, local_seq, envelope_id FROM envelope
        WHERE :every AND status < 2 AND sorted = 1 AND order_key >= :scope || ':' AND order_key < :scope || ';'
        ORDER BY place DESC, local_seq DESC LIMIT 1))
ORDER BY place DESC, local_seq DESC LIMIT 1
