UPDATE conversation SET state = (?2 = 1), paused = (?2 = 2) WHERE id = ?1
