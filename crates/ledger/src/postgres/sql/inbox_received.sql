INSERT INTO inbox_mark (node, received_upto) VALUES ($1, $2)
ON CONFLICT (node) DO UPDATE SET received_upto = excluded.received_upto
WHERE inbox_mark.received_upto < excluded.received_upto
