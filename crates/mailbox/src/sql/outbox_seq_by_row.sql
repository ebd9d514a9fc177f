SELECT seq FROM outbox WHERE id = :id
