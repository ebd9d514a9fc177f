DELETE FROM subscription WHERE member = $1
