SELECT order_key, tag FROM envelope_left WHERE scope = :scope
