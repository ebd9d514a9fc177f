DELETE FROM subscription WHERE conversation = $1 AND member = $2
