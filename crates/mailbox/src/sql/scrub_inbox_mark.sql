UPDATE inbox SET scrubbed_at = :now WHERE seq = :seq AND scrubbed_at IS NULL
