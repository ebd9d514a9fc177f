UPDATE outbox SET sorted = 1 WHERE seq > :after AND seq <= :upto AND sorted = 0
