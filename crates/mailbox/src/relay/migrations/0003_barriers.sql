-- A barrier is rare: the others of its kind are found by their order keys, which begin with the kind.
DROP INDEX envelope_scope;
CREATE INDEX envelope_barrier ON envelope (scope, place, local_seq) WHERE status < 2 AND barrier = 1;
