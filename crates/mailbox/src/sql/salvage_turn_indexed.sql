-- Every row has an entry in the index that keeps ids apart; the table itself is not read.
SELECT seq FROM turn INDEXED BY sqlite_autoindex_turn_1 ORDER BY id
