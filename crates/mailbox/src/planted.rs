//! Bugs that proofs switch on, one per rule, to see that its counterexample comes back.
//!
//! Only a build with the engine's `faults` reads them; otherwise each question is a constant no.

use sqlite::fault;

/// A start leaves rows on the wire that nobody carries any more.
pub(crate) const INFLIGHT_STAYS: &str = "mailbox.inflight_stays";
/// A row that was never attempted is given up for its age.
pub(crate) const AGE_OF_UNATTEMPTED: &str = "mailbox.age_of_unattempted";

/// Whether the bug is switched on.
pub(crate) fn planted(bug: &str) -> bool {
    fault::bug(bug)
}
