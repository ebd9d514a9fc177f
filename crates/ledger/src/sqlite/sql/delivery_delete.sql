DELETE FROM delivery WHERE message = ?1
