UPDATE member SET id = $1 WHERE name = $2 AND kind = $3 AND home = $4
