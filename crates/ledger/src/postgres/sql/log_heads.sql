SELECT id, epoch, head_seq FROM conversation WHERE id = ANY ($1::uuid[])
