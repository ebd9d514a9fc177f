UPDATE turn SET redelivered = 1 WHERE state = 0
