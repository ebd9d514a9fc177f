SELECT c.topic FROM subscription s JOIN conversation c ON c.number = s.conversation
WHERE s.member = $1 ORDER BY c.topic
