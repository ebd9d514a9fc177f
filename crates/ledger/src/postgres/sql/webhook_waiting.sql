SELECT message FROM delivery WHERE recipient = $1 AND rung = 1 AND push_conversation IS NOT NULL LIMIT $2
