UPDATE envelope SET status = :status, outcome = :outcome, ending = NULL, ended_at = :now, lease_token = NULL,
    lease_until = NULL, response_status = coalesce(:response_status, response_status),
    response_etag = coalesce(:response_etag, response_etag), response_code = coalesce(:response_code, response_code),
    response_resource = coalesce(:response_resource, response_resource), last_error = coalesce(:error, last_error),
    resolution = coalesce(:resolution, resolution), body = CASE WHEN :forget THEN NULL ELSE body END
WHERE local_seq = :seq AND status = :expected
