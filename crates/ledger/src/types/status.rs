//! Asking what became of an id.

use model::{ClientMessageId, Fingerprint, MemberId, Timestamp};

/// A question about one id.
#[derive(Clone, Debug)]
pub struct StatusQuestion {
    /// Whose.
    pub sender: MemberId,
    /// Which.
    pub client_message_id: ClientMessageId,
    /// What was asked under it.
    pub fingerprint: Fingerprint,
    /// When it first went on the wire, in broker time.
    pub first_attempt_at: Timestamp,
}

/// What a question does to an id nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Nothing: a copy under way may still be accepted.
    None,
    /// It is retired in the same transaction: no copy can be accepted any more.
    Retire,
}
