SELECT number FROM message ORDER BY number DESC LIMIT 1
