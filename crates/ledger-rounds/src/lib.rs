//! Rounds of accepts at a ledger, as `cargo xtask bench broker` measures them.
//!
//! The library is linked by that command. The binary runs the same rounds in a process of its own, so that two builds
//! of the ledger can be measured in turn (`--against`); for another commit this folder is copied into that commit's
//! tree. It therefore names no crate of the workspace but `ledger` and `model`, and only their doors for accepts.

mod books;
mod callers;
mod measured;

pub use books::{Books, FAN_OUT, join};
pub use callers::{Caller, id, round};
pub use measured::{Measured, median};
