UPDATE inbox_mark SET received_upto = ?3, went_back_at = ?4, went_back_from = ?2, went_back_to = ?3 WHERE node = ?1
