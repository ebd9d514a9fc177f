-- An inbox that went back hears how far a message had come. What is processed gets no turn; what was engaged is run once
-- more, marked.
UPDATE inbox
SET rung = :rung, rung_at = :now, notified_at = coalesce(notified_at, :now), read_at = coalesce(read_at, :read_at),
    turn = CASE WHEN :rung = 7 THEN 3 WHEN :rung = 6 AND turn = 0 THEN 2 ELSE turn END
WHERE seq = :seq AND rung < :rung
