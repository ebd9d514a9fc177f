-- What is only asked about waits for nobody, and is found without a walk through those who do.
CREATE INDEX envelope_ending ON envelope (place, local_seq) WHERE status = 0 AND ending IS NOT NULL;
