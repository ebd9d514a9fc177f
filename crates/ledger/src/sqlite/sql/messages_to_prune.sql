SELECT number, seq FROM message WHERE conversation = ?1 AND ts_us < ?2 ORDER BY seq LIMIT ?3
