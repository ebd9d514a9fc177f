DELETE FROM meta WHERE k = :k
