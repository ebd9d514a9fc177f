INSERT INTO escalation (conversation, rev, seq, asked_by, at) VALUES (?1, ?2, ?3, ?4, ?5)
