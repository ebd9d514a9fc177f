UPDATE node SET redelivered_upto = $2 WHERE number = $1
