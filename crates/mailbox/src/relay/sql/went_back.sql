-- What waits in an older copy may have left since the copy was made, and under another condition than the copy knows.
UPDATE envelope SET outcome = 1, sent_precondition = NULL WHERE status = 0 AND outcome = 0
