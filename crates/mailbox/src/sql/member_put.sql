INSERT INTO member (id, name, kind) VALUES (:id, :name, :kind)
