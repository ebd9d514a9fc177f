UPDATE inbox SET turn = 3, rung = 7, rung_at = :now WHERE seq = :seq AND turn IN (1, 2, 4)
