//! Test equipment: what the rooms' tests, `xtask test` and the larger proofs share.
//!
//! Invariants:
//! - Nothing started here outlives its owner. A handle ends its process by process id when dropped; a reaper
//!   ends it when the owner itself was killed and could drop nothing.
//! - No fixed port, no shared folder, no user's home: ports are free ones, files live in temporary folders.
//! - Waiting is waiting for a condition, with a bound, and the error says what was awaited.
//! - Checks are pure functions over what *clients* saw; they never ask the server whether it did well.

pub mod bin;
mod clock;
pub mod disk;
pub mod explained;
pub mod explore;
pub mod fleet;
pub mod history;
pub mod kills;
pub mod parley;
pub mod port;
pub mod postgres;
pub mod process;
pub mod redis;
pub mod refusals;
pub mod seeded;
pub mod stopwatch;
pub mod turns;
pub mod wait;

pub use clock::{ManualClock, SeededEntropy};
pub use wait::{WaitedTooLong, wait_for};
