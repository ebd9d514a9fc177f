-- Subscribers who do not have it at once.
SELECT s.member FROM subscription s JOIN member r ON r.number = s.member
WHERE s.conversation = ?1 AND (r.home IS NOT NULL OR r.pushed = 1)
