SELECT 1 FROM turn WHERE id = :id
