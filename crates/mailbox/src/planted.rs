//! Bugs that proofs switch on, one per rule, to see that its counterexample comes back.
//!
//! Only a build with the engine's `faults` reads them; otherwise each question is a constant no.

use sqlite::fault;

/// A start leaves rows on the wire that nobody carries any more.
pub const INFLIGHT_STAYS: &str = "mailbox.inflight_stays";
/// A row that was never attempted is given up for its age.
pub const AGE_OF_UNATTEMPTED: &str = "mailbox.age_of_unattempted";
/// A rerun is handed out as if it were the first attempt.
pub const TURN_UNMARKED: &str = "mailbox.turn_unmarked";
/// The end of a turn commits alone, and the reply after it.
pub const TURN_REPLY_APART: &str = "mailbox.turn_reply_apart";

/// Whether the bug is switched on.
pub(crate) fn planted(bug: &str) -> bool {
    fault::bug(bug)
}
