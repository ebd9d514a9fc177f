UPDATE mesh SET deliver_by_swept_at = $1
