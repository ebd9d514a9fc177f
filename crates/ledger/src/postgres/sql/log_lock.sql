SELECT 1 FROM conversation WHERE number = $1 FOR NO KEY UPDATE
