UPDATE outbox SET sorted = 1 WHERE sorted = 0
