UPDATE envelope SET status = 0, outcome = :outcome, ending = :ending, lease_token = NULL, lease_until = NULL,
    next_attempt_at = :due, last_error = coalesce(:error, last_error), response_status = coalesce(:response_status, response_status),
    response_code = coalesce(:response_code, response_code), response_etag = coalesce(:response_etag, response_etag)
WHERE local_seq = :seq AND status = 1 AND lease_token = :lease
