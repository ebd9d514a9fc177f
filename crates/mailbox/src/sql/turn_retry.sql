UPDATE inbox SET turn = :turn WHERE seq = :seq AND turn = 4
