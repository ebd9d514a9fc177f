UPDATE node SET removed_at = $2 WHERE number = $1 AND removed_at IS NULL
