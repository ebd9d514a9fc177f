//! The ledger through its doors, on each store.

mod complete;
mod sqlite;
