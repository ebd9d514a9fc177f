//! What a person may do with an outbox row, as pure rules.
//!
//! - A row on the wire is nobody's to touch, and a row that ended well or was retired has nothing to change.
//! - A row that may have been accepted is replaced under a new id only on the broker's word, or by force.
//! - Retiring a row waits for nobody: what it records of the broker's side claims no more than is known.
//! - The successor of a row that may have been accepted does not leave before the broker was asked.

use crate::admission::StatusAnswer;
use crate::clock::Timestamp;
use crate::id::RowId;
use crate::outbox::{BrokerReceipt, OutboxState, Outcome, Status};

/// Why an operator cannot have a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untouchable {
    /// Its answer is on the way.
    Inflight,
    /// The broker has it.
    Accepted(BrokerReceipt),
    /// It was retired before.
    Aborted {
        /// The row that took its place.
        successor: Option<RowId>,
    },
}

/// Whether the broker must be asked before a row is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// It never left this host, or the broker has retired its id.
    NotNeeded,
    /// A copy may have been accepted.
    Needed {
        /// When the first one left, in broker time.
        first_attempt_at: Timestamp,
    },
}

/// The broker's word on a row, asked with a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It was not asked, or did not answer.
    Silence,
    /// It answered.
    Told(StatusAnswer),
}

/// Whether a possible duplicate is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// No.
    Refuse,
    /// Yes: the operator insists.
    Force,
}

/// Why nobody can say whether a row was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncertainty {
    /// The broker did not answer.
    Unreachable,
    /// The broker may have accepted and forgotten it.
    WindowPassed,
}

/// Whether an outcome may still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finality {
    /// The broker has not been asked yet.
    Open,
    /// Nothing more will be known.
    Settled,
}

/// What becomes of a row an operator wants replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// It is aborted and its successor pending, in one transaction.
    Replace {
        /// What is known of the old row.
        outcome: Outcome,
        /// Whether that may change.
        finality: Finality,
    },
    /// The broker has it: the row is done, and there is no successor.
    AlreadyAccepted(BrokerReceipt),
    /// It stays as it is: only force would replace it.
    NeedsForce(Uncertainty),
}

/// What is known of the broker's side of a row that an operator may touch; nothing while it waits.
pub fn known(state: &OutboxState) -> Result<Option<Outcome>, Untouchable> {
    match state {
        OutboxState::Pending => Ok(None),
        OutboxState::Dead { outcome, .. } => Ok(Some(*outcome)),
        OutboxState::Inflight { .. } => Err(Untouchable::Inflight),
        OutboxState::Done { receipt } => Err(Untouchable::Accepted(*receipt)),
        OutboxState::Aborted { successor, .. } => Err(Untouchable::Aborted { successor: *successor }),
    }
}

/// Whether the broker must be asked about a row before it is replaced.
pub fn asking(state: &OutboxState, first_attempt_at: Option<Timestamp>) -> Result<Asking, Untouchable> {
    Ok(match (first_attempt_at, known(state)?) {
        (None, _) | (Some(_), Some(Outcome::NotSent | Outcome::NotAccepted)) => Asking::NotNeeded,
        (Some(first_attempt_at), None | Some(Outcome::Unknown | Outcome::Accepted)) => {
            Asking::Needed { first_attempt_at }
        }
    })
}

/// Decides a requeue. `word` is what the broker said to a question with a fence, so that `absent` is for ever.
pub fn requeue(
    state: &OutboxState,
    first_attempt_at: Option<Timestamp>,
    word: Word,
    doubt: Doubt,
) -> Result<Requeue, Untouchable> {
    let replace = |outcome, finality| Requeue::Replace { outcome, finality };
    Ok(match (asking(state, first_attempt_at)?, word) {
        (Asking::NotNeeded, _) => replace(known(state)?.unwrap_or(Outcome::NotSent), Finality::Settled),
        (Asking::Needed { .. }, Word::Told(StatusAnswer::Accepted(receipt))) => {
            Requeue::AlreadyAccepted(receipt)
        }
        (
            Asking::Needed { .. },
            Word::Told(StatusAnswer::AcceptedOtherFingerprint | StatusAnswer::Retired | StatusAnswer::Absent),
        ) => replace(Outcome::NotAccepted, Finality::Settled),
        (Asking::Needed { .. }, Word::Told(StatusAnswer::Unknown)) => match doubt {
            Doubt::Refuse => Requeue::NeedsForce(Uncertainty::WindowPassed),
            Doubt::Force => replace(Outcome::Unknown, Finality::Settled),
        },
        (Asking::Needed { .. }, Word::Silence) => match doubt {
            Doubt::Refuse => Requeue::NeedsForce(Uncertainty::Unreachable),
            Doubt::Force => replace(Outcome::Unknown, Finality::Open),
        },
    })
}

/// Decides an abort: what is known of the row it retires. It never needs force, because it sends nothing.
pub fn abort(state: &OutboxState, first_attempt_at: Option<Timestamp>) -> Result<Outcome, Untouchable> {
    let untold = if first_attempt_at.is_some() { Outcome::Unknown } else { Outcome::NotSent };
    Ok(known(state)?.unwrap_or(untold))
}

/// Whether a successor's first copy waits until the broker was asked about the row it replaces.
pub fn waits_for(replaced: Outcome, finality: Finality) -> bool {
    replaced == Outcome::Unknown && finality == Finality::Open
}

/// Whether a successor is retired when the row it replaces turns out accepted: the same words must not go out
/// twice, other words were asked for as such, and what may have left cannot be taken back.
pub fn retires_successor(successor: Status, first_attempt_at: Option<Timestamp>, same_words: bool) -> bool {
    successor == Status::Pending && first_attempt_at.is_none() && same_words
}

#[cfg(test)]
#[path = "operator_tests.rs"]
mod tests;
