DELETE FROM webhook WHERE member = $1
