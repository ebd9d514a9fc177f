-- Several brokers forget: none takes back what another one recorded.
UPDATE ageing SET ids_begun_at = greatest(ids_begun_at, $1), ids_deadline_at = greatest(ids_deadline_at, $2),
    keys_begun_at = greatest(keys_begun_at, $3)
