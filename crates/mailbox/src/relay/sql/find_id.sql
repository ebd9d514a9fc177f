SELECT * FROM envelope WHERE envelope_id = :id
