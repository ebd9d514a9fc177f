UPDATE ageing SET ids_begun_at = ?1, ids_deadline_at = ?2, keys_begun_at = ?3
