UPDATE delivery SET again = NULL WHERE message = ?1 AND recipient = ?2 AND again = 1
