SELECT m.number, m.ts_us
FROM mail w CROSS JOIN message m CROSS JOIN delivery d
WHERE w.recipient = ?1 AND m.number BETWEEN w.first AND w.last
    AND d.message = m.number AND d.recipient = ?1 AND d.rung = 1
ORDER BY w.first, m.number LIMIT ?2
