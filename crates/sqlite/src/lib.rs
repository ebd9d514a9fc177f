//! The engine under every SQLite file of the product.
//!
//! One writer per file. Callers hand in jobs; whatever is waiting when the writer is free runs in ONE
//! transaction, each job in a savepoint of its own unless it checks everything before it writes, and every
//! answer is given after that transaction's `COMMIT` returned. A durable write therefore costs a share of one
//! sync, and no timer is involved: the batch is what arrived during the last sync. Callers that ask alike may
//! share a job ([`Gathering`]). A caller that has been the only one for a while has the writer to itself, on its own
//! thread ([`Bounds::lone_commit_max`]).
//!
//! Invariants
//! - An answer `Ok` means: committed under `synchronous=FULL`, in a log whose folder entry is synced.
//! - A job that refuses leaves its neighbours' work untouched; so does one that panics in its savepoint.
//! - When a transaction is lost, every job of that batch is told so; none of it is claimed.
//! - After a failed sync nothing is written any more until the process starts anew; reads stay up.
//! - An answer that rests on bytes of an earlier process is given after these were synced: opening syncs log and file.
//! - An error that denies storage ([`StorageError::denies_storage`]) is true after a crash at any later moment.
//! - Nothing but the writer's own `COMMIT` commits, also in a job that goes on after SQLite rolled its transaction back.
//! - Every wait is bounded: the line of jobs, the batch, the read transaction, the log file.
//! - Jobs and reads never call the [`Db`] they run in, and never begin or end a transaction themselves.
//! - What SQLite was asked for is read back; a setting that did not take is a refusal to open.

mod checkpoint;
mod checkpointer;
mod copy;
mod db;
mod engine;
mod error;
pub mod fault;
mod folder;
mod gather;
mod job;
mod log_index;
mod log_readers;
mod lone;
mod many;
mod mark;
mod migrate;
mod open;
mod options;
mod reader;
mod reply;
mod scene;
mod stats;
mod stores;
mod wait;
mod writer;

pub use copy::{CopyError, CopySource, look_through};
pub use db::Db;
pub use error::{OpenError, StorageError};
pub use gather::Gathering;
pub use log_readers::{KeptLog, LogReader};
pub use many::InsertMany;
pub use mark::{FileMark, MarkedBy};
pub use migrate::{SchemaDrift, assert_schema_sum, check_schema_sum};
pub use options::{Bounds, Freed, Migration, Options, Schema};
pub use rusqlite;
pub use stats::{BATCH_BUCKETS, Stats};
pub use stores::{StoppedStore, Stores};
