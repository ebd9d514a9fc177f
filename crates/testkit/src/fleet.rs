//! Real brokers and daemons under real callers: many copies of one id at once, two brokers of one mesh that die in
//! turn, and a daemon that dies, waits for days and sees its broker come and go.
//!
//! Invariants:
//! - Everything is a process of its own, reached as a caller would: the brokers, the daemons, PostgreSQL, Redis.
//! - What is judged is what callers were answered and what readers saw; the stores are asked only for their audit.
//! - A planted bug is part of the plan, so a run that finds nothing can be told from one that cannot find anything.

pub mod brokers;
mod caller;
pub mod chat;
pub mod daemon;
pub mod disk;
pub mod hostile;
pub mod pressure;
pub mod races;
pub mod relays;
mod servers;
pub mod upgrade;

use crate::bin::CliError;
use crate::kills::KillsError;
use crate::process::LineNeverCame;
use crate::wait::WaitedTooLong;
use crate::{postgres, redis};

/// The bug both proofs must find: an id is written in a transaction of its own, behind its message's.
const DEDUPE_OWN_TRANSACTION: &str = "bug:ledger.dedupe_own_transaction";

/// A bug that a ledger in a file has: a message is refused and stored.
const REFUSED_AND_STORED: &str = "bug:sqlite.refused_and_stored:ledger.accept";

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A file of the run, a connection, or a program.
    #[error("the run's own files and connections: {0}")]
    Io(#[from] std::io::Error),
    /// A command gave no output.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// A broker or a daemon did not come up.
    #[error(transparent)]
    NotReady(#[from] LineNeverCame),
    /// Something did not happen in time.
    #[error(transparent)]
    Waited(#[from] WaitedTooLong),
    /// PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] postgres::StartError),
    /// Redis.
    #[error(transparent)]
    Redis(#[from] redis::StartError),
    /// A log could not be read.
    #[error(transparent)]
    Log(#[from] KillsError),
    /// An answer without what it must hold.
    #[error("{asked}: {answered}")]
    Unreadable {
        /// The question.
        asked: String,
        /// What came.
        answered: String,
    },
}
