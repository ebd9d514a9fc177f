//! Bugs that proofs plant in turns, to see them found. Without the feature `faults` none can be switched on.

/// A rerun is handed out as if it were the first attempt.
pub const UNMARKED: &str = "mailbox.turn_unmarked";
/// The end commits alone, and the reply after it.
pub const REPLY_APART: &str = "mailbox.turn_reply_apart";
