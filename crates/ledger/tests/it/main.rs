//! The ledger through its doors, on each store.
#![expect(clippy::unwrap_used, reason = "a test says no by panicking, in its helpers too")]

mod complete;
mod crash;
mod hub_crash;
mod mail;
mod numbers;
mod planted;
mod postgres;
mod push_crash;
mod sqlite;
mod stirs;
mod tokens;
