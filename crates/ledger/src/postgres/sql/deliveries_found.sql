-- One row per pair asked, in order, also where the delivery or the recipient is not here.
SELECT g.place, r.number IS NOT NULL, r.home, d.message, d.recipient, d.rung, d.stretch
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS g (message, recipient, place)
LEFT JOIN member r ON r.id = g.recipient
LEFT JOIN message m ON m.id = g.message
LEFT JOIN delivery d ON d.message = m.number AND d.recipient = r.number
ORDER BY g.place
