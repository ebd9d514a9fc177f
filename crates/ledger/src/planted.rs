//! Bugs that proofs switch on, one per rule, to see that its counterexample comes back.
//!
//! Only a build with the engine's `faults` reads them; otherwise each question is a constant no.

use ::sqlite::fault;

/// The dedupe row is written in a transaction of its own, after the message's.
pub const DEDUPE_OWN_TRANSACTION: &str = "ledger.dedupe_own_transaction";
/// A question with a fence retires nothing.
pub const NO_FENCE: &str = "ledger.no_fence";
/// A copy past its send deadline is taken.
pub const NO_SEND_DEADLINE: &str = "ledger.no_send_deadline";
/// A question about an id does not look at the fingerprint.
pub const NO_FINGERPRINT: &str = "ledger.no_fingerprint";
/// A link's witnesses are not looked up.
pub const NO_WITNESSES: &str = "ledger.no_witnesses";

/// The key of a hub write is recorded in a transaction of its own, after the write's.
pub const IDEM_OWN_TRANSACTION: &str = "ledger.idem_own_transaction";
/// A question with a fence retires no key.
pub const HUB_NO_FENCE: &str = "ledger.hub_no_fence";
/// A copy of a hub write is taken at any age.
pub const HUB_NO_AGE: &str = "ledger.hub_no_age";
/// Messages are stamped before the log's lock is held, and logs are read in the order of the stamps.
pub const TIMESTAMP_CURSOR: &str = "ledger.timestamp_cursor";
/// PostgreSQL's brokers take their process's clock for the store's.
pub const PROCESS_CLOCK: &str = "ledger.process_clock";

/// Whether [`TIMESTAMP_CURSOR`] is switched on, for readers that rely on places without gaps.
pub fn reads_by_time() -> bool {
    planted(TIMESTAMP_CURSOR)
}

/// Whether the bug is switched on.
pub(crate) fn planted(bug: &str) -> bool {
    fault::bug(bug)
}

/// What the store's clock is ahead of the database's.
pub(crate) fn clock_ahead_us() -> i64 {
    if planted(PROCESS_CLOCK) { fault::date_ahead_us() } else { 0 }
}
