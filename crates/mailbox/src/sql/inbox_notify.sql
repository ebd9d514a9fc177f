UPDATE inbox SET rung = :rung, rung_at = :now, notified_at = :now WHERE seq = :seq AND rung = :held
