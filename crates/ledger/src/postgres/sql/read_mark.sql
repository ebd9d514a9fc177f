SELECT seq FROM read_mark WHERE member = $1 AND conversation = $2
