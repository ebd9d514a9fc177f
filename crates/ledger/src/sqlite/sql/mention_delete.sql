DELETE FROM mention_index WHERE message = ?1
