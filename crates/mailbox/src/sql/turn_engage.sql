-- A rerun changes no rung: the message was engaged before.
UPDATE inbox
SET turn = 1, rung_at = CASE WHEN rung < :rung THEN :now ELSE rung_at END, rung = max(rung, :rung),
    notified_at = coalesce(notified_at, :now)
WHERE seq = :seq AND turn = :held
