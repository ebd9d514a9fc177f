-- A forgotten transaction may hold a log's lock no longer than this; a statement waits for one no longer.
SET default_transaction_isolation = 'read committed';
SET idle_in_transaction_session_timeout = '30s';
SET lock_timeout = '10s';
SET statement_timeout = '30s';
SET client_min_messages = 'warning';
-- Every statement has its index; a plan made while a table was empty must not outlive that.
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
-- By its key, in the order of its key, and no further than is asked for.
SET enable_bitmapscan = off;
SET enable_material = off;
SET random_page_cost = 1;
SET jit = off;
-- With its shape given, a plan made once serves every value: PostgreSQL would make one for each array's length, which
-- costs more than using it.
SET plan_cache_mode = force_generic_plan;
