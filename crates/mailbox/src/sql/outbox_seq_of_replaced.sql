SELECT seq FROM outbox WHERE superseded_by = :id
