INSERT INTO envelope (place, envelope_id, idempotency_key, fingerprint, method, path, query, route_class, scope, order_key,
    barrier, precondition, base_envelope, source_agent, source_session, principal_hint, upstream_id, status, outcome,
    attempts, next_attempt_at, lease_token, lease_until, queued_at, created_at, first_attempt_at, sent_precondition,
    possible_duplicate_of, supersedes, body_bytes)
VALUES (coalesce((SELECT place FROM envelope WHERE local_seq = :succeeds), (SELECT max(local_seq) FROM envelope) + 1, 1),
    :id, :key, :fingerprint, :method, :path, :query, :class, :scope, :order_key, :barrier, :precondition,
    :base, :agent, :session, :principal, :upstream_id, :status, :outcome, :attempts, :now, :lease, :lease_until, :now,
    :created_at, :first_attempt_at, :sent_precondition, :twin, :supersedes, :body_bytes)
RETURNING *
