UPDATE conversation SET epoch = epoch + 1 WHERE number = ?1 AND floor_seq = head_seq RETURNING epoch
