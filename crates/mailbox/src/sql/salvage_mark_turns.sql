-- A turn that was lost with the damaged file was interrupted.
UPDATE inbox SET turn = 2 WHERE turn = 1 AND seq NOT IN (SELECT inbox_seq FROM turn WHERE state = 0)
