-- Several brokers forget: none takes back what another one recorded.
UPDATE ageing SET ids_tried_upto = greatest(ids_tried_upto, $1), ids_deadline_upto = greatest(ids_deadline_upto, $2),
    keys_made_upto = greatest(keys_made_upto, $3)
