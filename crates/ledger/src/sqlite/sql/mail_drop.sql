DELETE FROM mail WHERE recipient = ?1 AND first = ?2
