INSERT INTO read_mark (member, conversation, seq) VALUES (?1, ?2, ?3)
ON CONFLICT (member, conversation) DO UPDATE SET seq = max(seq, excluded.seq)
