//! Webhooks: deliveries of members whose home is an HTTP endpoint.
//!
//! A webhook is a member of kind `service` that the broker hosts and whose deliveries it pushes. Invariants:
//!
//! - What is pushed is a committed delivery row, and nothing else decides what is due: a kill loses no push.
//! - A row is `delivered` when the endpoint answered 2xx; `webhook-id` is the same at every attempt.
//! - One row of a conversation is under way at a time, under a claim in the ledger, so success keeps order and two
//!   brokers never push one row at once.
//! - A connection goes to an address that was checked, by number, and never follows a redirect.
//! - Secrets appear in signatures only: no log, error or listing shows them.
