-- Mail without its envelope is like scrubbed mail.
UPDATE inbox SET scrubbed_at = :now WHERE scrubbed_at IS NULL AND seq NOT IN (SELECT seq FROM inbox_envelope)
