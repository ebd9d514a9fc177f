SELECT deliver_by_swept_at FROM mesh
