SELECT order_key, count(*) AS rows, sum(body_bytes) AS bytes FROM envelope WHERE status < 2 GROUP BY order_key
