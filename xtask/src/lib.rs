//! The project's own commands: `test`, `prove`, `soak`, `bench`, `tidy`, `docs`, `store-state`.
//!
//! Invariants:
//! - `test` is what a newcomer and `.ci/run` call; it needs nothing prepared and leaves nothing running.
//! - A proof counts only with its control: the same harness found the bug when it was planted.
//! - A benchmark prints what one run measured, ratios beside limits; a peer that is missing is named, not guessed.
//! - Everything a command decides by is a table: needs, proofs, benches, arrows, rules, generated pages.

pub mod bench;
pub mod build;
pub mod docs;
pub mod facts;
pub mod needs;
pub mod node;
pub mod page;
pub mod prove;
pub mod revision;
pub mod soak;
pub mod stored;
pub mod test;
pub mod tidy;
pub mod workspace;

mod cli;
mod steps;

pub use cli::main;

/// How a command ended, beyond the errors that stopped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything asked for holds.
    Holds,
    /// It ran to its end and found something that does not hold.
    Broken,
    /// The command line names something that is not there.
    Usage,
}
