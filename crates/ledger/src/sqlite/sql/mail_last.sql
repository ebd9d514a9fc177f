SELECT first, last FROM mail WHERE recipient = ?1 ORDER BY first DESC LIMIT 1
