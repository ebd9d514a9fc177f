UPDATE delivery SET rung_told = max(rung_told, min(?3, rung)) WHERE message = ?1 AND recipient = ?2 AND rung_told IS NOT NULL
