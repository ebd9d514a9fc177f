-- A stretch's end, and the next row in it that waits, after its first stopped to.
SELECT w.last, (SELECT m.number FROM message m CROSS JOIN delivery d
    WHERE m.number > w.first AND m.number <= w.last AND d.message = m.number AND d.recipient = ?1 AND d.rung = 1
    ORDER BY m.number LIMIT 1)
FROM mail w WHERE w.recipient = ?1 AND w.first = ?2
