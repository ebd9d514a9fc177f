UPDATE outbox SET outcome = :outcome, outcome_settled_at = :now WHERE seq = :seq AND status = :status AND outcome = 1
