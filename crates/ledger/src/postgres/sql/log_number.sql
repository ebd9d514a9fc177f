SELECT number, head_seq - floor_seq FROM conversation WHERE id = $1
