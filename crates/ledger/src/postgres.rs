//! The ledger in PostgreSQL, shared by any number of broker processes.
//!
//! - READ COMMITTED with explicit locks: a log's row is locked before a place in it is taken, topics before direct
//!   conversations and each kind by number, keys of one statement in sorted order.
//! - Accepts of many callers are one transaction on one of a few connections, their look-ups one statement; see
//!   `batch` and `lookup`. Undelivered rows are found by the stretches they stand in; see `mail`.
//! - Work runs in tasks of its own: a caller that goes away leaves no connection inside a transaction.
//! - A connection whose transaction did not end is closed, never handed to the next caller.
//! - A server that does not sync its commits is refused.
//! - Time is the database's clock.

mod accept;
mod ageing;
mod batch;
mod chat;
mod durable;
mod explain;
mod history;
mod hub;
mod hub_batch;
mod janitor;
mod join;
mod link;
mod list;
mod lookup;
mod mail;
mod manage;
mod mesh;
mod push;
mod received;
mod row;
mod schema;
mod session;
mod signin;
mod status;
mod store;
mod token;
mod trouble;
mod wake;
mod wayin;
mod webhook;
mod window;
mod write;

pub use schema::{OpenError as PostgresOpenError, SUM as POSTGRES_SCHEMA};
pub use store::PostgresLedger;
pub use trouble::PostgresError;

/// The text of a statement, from its file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql/", $name, ".sql"))
    };
}
use sql;
