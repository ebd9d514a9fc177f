SELECT s.member, r.home IS NULL, r.pushed FROM subscription s JOIN member r ON r.number = s.member
WHERE s.conversation = ?1
