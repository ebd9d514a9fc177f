INSERT OR IGNORE INTO outbox_name (key, seq) VALUES (?, ?)
