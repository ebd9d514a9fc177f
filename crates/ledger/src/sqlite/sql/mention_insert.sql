INSERT INTO mention_index (member, message) VALUES (?1, ?2)
