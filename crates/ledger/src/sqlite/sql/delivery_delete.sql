DELETE FROM delivery WHERE message = ?1 RETURNING recipient, rung
