SELECT id, epoch, head_seq FROM conversation WHERE id = ?1
