SELECT v FROM meta WHERE k = :k
