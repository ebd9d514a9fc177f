SELECT seq FROM turn INDEXED BY sqlite_autoindex_turn_1 ORDER BY id DESC
