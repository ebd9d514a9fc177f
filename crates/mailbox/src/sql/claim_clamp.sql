-- The clock may have been set back since: nobody waits longer than the longest wait there is.
UPDATE lane SET next_attempt_at = :latest WHERE next_attempt_at > :latest
