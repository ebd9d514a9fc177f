-- What is over is found without reading what is done, or all that waits.
CREATE INDEX envelope_inflight ON envelope (lease_until) WHERE status = 1;
CREATE INDEX envelope_age ON envelope (queued_at) WHERE status = 0 AND ending IS NULL;
