-- A turn that was begun or ended after the backup is not known here.
UPDATE inbox SET redelivered = 1 WHERE turn < 3 AND scrubbed_at IS NULL
