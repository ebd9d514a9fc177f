//! The ledger in one SQLite file.
//!
//! - The engine's one writer is the lock of every log: places are taken inside its transaction.
//! - Checks come before writes, so that a refused message has nothing to undo and its neighbours in the
//!   transaction nothing to notice.
//! - Accepts of many callers are one job, and so are their look-ups; see `store::run`.
//! - Time is read inside the job, on the writer's thread: commit order and clock order agree.

mod accept;
mod ageing;
mod chat;
mod explain;
mod history;
mod hub;
mod janitor;
mod join;
mod link;
mod list;
mod mail;
mod manage;
mod mesh;
mod planted;
mod push;
mod received;
mod row;
mod schema;
mod signin;
mod status;
mod store;
mod token;
mod wayin;
mod webhook;
mod window;
mod write;

pub use schema::SCHEMA;
pub use store::SqliteLedger;

/// The text of a statement, from its file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/sql/", $name, ".sql"))
    };
}
use sql;
