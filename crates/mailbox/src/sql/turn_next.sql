-- The head of a conversation, the most urgent first. Nobody is woken for a message past its deadline, and it holds
-- up nobody.
SELECT seq FROM inbox AS head INDEXED BY inbox_turn_next
WHERE recipient_member_id = :agent AND turn IN (0, 2) AND scrubbed_at IS NULL
    AND (deliver_by IS NULL OR deliver_by > :broker_now)
    AND NOT EXISTS (
        SELECT 1 FROM inbox AS earlier INDEXED BY inbox_turn_line
        WHERE earlier.recipient_member_id = head.recipient_member_id AND earlier.conversation = head.conversation
            AND earlier.seq < head.seq AND earlier.turn IN (0, 2) AND earlier.scrubbed_at IS NULL
            AND (earlier.deliver_by IS NULL OR earlier.deliver_by > :broker_now))
ORDER BY priority, seq LIMIT 1
