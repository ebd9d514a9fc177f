//! The relay's file: writes that wait on this host until their upstream has them.
//!
//! Invariants
//! - A row is stored before its first byte leaves, with the key and the precondition of every attempt.
//! - No header but the key, the precondition and what the caller says of itself is ever a column.
//! - Writes that overlap leave in their order; a conflict holds back later replaces of its resource alone.
//! - A row that may have left ends only through [`Envelopes::conclude`], after its key was asked about. One whose caller
//!   heard the refusal itself is forgotten, unless the caller of a copy holds a receipt for it.
//! - Every result names the lease it is for; a stale one changes nothing, except that a commit is always truth.

mod attempts;
mod claim;
mod column;
mod open;
mod operate;
mod read;
mod row;
mod settle;
mod sort;
mod sql;
mod store;

pub use claim::{Claims, Taken, Task};
pub use open::{Envelopes, RELAY_SCHEMA, SetAside};
pub use operate::{OperateError, Successor, Withdrawn};
pub use read::{Ahead, Bodies, Count, OpenKey};
pub use row::{Envelope, Response, Source};
pub use settle::{Forgetting, Heard, LeftVersion, Settled};
pub use store::{NewEnvelope, Start, Stored};

/// The one writer read the row in this very transaction: the state a statement names is the state it finds.
fn one(changed: usize) -> rusqlite::Result<()> {
    if changed == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) }
}
