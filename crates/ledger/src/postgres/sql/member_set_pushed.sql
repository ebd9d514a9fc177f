UPDATE member SET pushed = $2 WHERE number = $1
