UPDATE ageing SET ids_tried_upto = ?1, ids_deadline_upto = ?2, keys_made_upto = ?3
