DELETE FROM message WHERE number = ?1
