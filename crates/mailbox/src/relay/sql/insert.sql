INSERT INTO envelope (place, envelope_id, idempotency_key, fingerprint, method, path, query, route_class, scope, order_key,
    barrier, precondition, base_envelope, source_agent, source_session, principal_hint, upstream_id, status, outcome,
    attempts, next_attempt_at, lease_token, lease_until, queued_at, created_at, first_attempt_at, sent_precondition,
    possible_duplicate_of, supersedes, body_bytes, body, named, sorted)
VALUES (coalesce((SELECT place FROM envelope WHERE local_seq = ?1), (SELECT max(local_seq) FROM envelope) + 1, 1),
    ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
    ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?21,
    ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)
ON CONFLICT (idempotency_key) DO NOTHING
