-- A dead row stays dead, and its id used; without its words it can only be retired.
UPDATE outbox SET payload = NULL WHERE seq = :seq AND status = 3
