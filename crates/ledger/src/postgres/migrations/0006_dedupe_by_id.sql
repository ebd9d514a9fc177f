-- Keyed by id before sender: ids that are minted in the order of time, by whomever, then go to the end of one tree and
-- a batch changes few pages. A key that began with the sender had an end for each of them.
ALTER TABLE dedupe DROP CONSTRAINT dedupe_pkey;
ALTER TABLE dedupe ADD CONSTRAINT dedupe_pkey PRIMARY KEY (client_message_id, sender_member_id, mesh);
