UPDATE member SET role = $2 WHERE home = $1 AND kind = 0
