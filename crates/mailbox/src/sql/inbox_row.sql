SELECT inbox.*, inbox_envelope.envelope FROM inbox LEFT JOIN inbox_envelope USING (seq) WHERE seq = :seq
