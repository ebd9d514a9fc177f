//! A row of the outbox, small, and as the rules see it.

use model::LeaseToken;
use model::operator::Finality;
use model::outbox::{AbortedBy, DeadReason, OutboxState, Outcome, Status};

use super::time::{At, receipt};

/// A row of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) life: Life,
    /// What it says.
    pub(super) words: u8,
    pub(super) first_attempt_at: Option<At>,
    /// An operator's hold: it is gone when the courier took the row after all.
    pub(super) held: bool,
}

/// See [`OutboxState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life {
    /// There is no row.
    Absent,
    Pending,
    Inflight {
        lease: u8,
    },
    Done {
        accepted_at: At,
    },
    Dead(Fate),
    Aborted(Fate),
}

/// What is known of a row that ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fate {
    pub(super) outcome: Outcome,
    /// Whether `unknown` is for good.
    pub(super) settled: bool,
}

impl Row {
    pub(super) const ABSENT: Row = Row { life: Life::Absent, words: 0, first_attempt_at: None, held: false };

    pub(super) const fn pending(words: u8) -> Row {
        Row { life: Life::Pending, words, ..Row::ABSENT }
    }

    pub(super) fn status(&self) -> Option<Status> {
        match self.life {
            Life::Absent => None,
            Life::Pending => Some(Status::Pending),
            Life::Inflight { .. } => Some(Status::Inflight),
            Life::Done { .. } => Some(Status::Done),
            Life::Dead(_) => Some(Status::Dead),
            Life::Aborted(_) => Some(Status::Aborted),
        }
    }

    /// As the rules see it.
    pub(super) fn state(&self) -> Option<OutboxState> {
        Some(match self.life {
            Life::Absent => return None,
            Life::Pending => OutboxState::Pending,
            Life::Inflight { lease } => OutboxState::Inflight { lease: LeaseToken::from_bytes([lease; 16]) },
            Life::Done { accepted_at } => OutboxState::Done { receipt: receipt(accepted_at) },
            Life::Dead(Fate { outcome, .. }) => {
                OutboxState::Dead { reason: DeadReason::Rejected, outcome, last_error: None }
            }
            Life::Aborted(Fate { outcome, .. }) => {
                OutboxState::Aborted { by: AbortedBy::Operator, outcome, successor: None }
            }
        })
    }

    /// What is known of it, once it ended here.
    pub(super) fn known(&self) -> Option<Fate> {
        match self.life {
            Life::Dead(known) | Life::Aborted(known) => Some(known),
            Life::Absent | Life::Pending | Life::Inflight { .. } | Life::Done { .. } => None,
        }
    }
}

impl Fate {
    pub(super) const fn open(outcome: Outcome) -> Fate {
        Fate { outcome, settled: false }
    }

    pub(super) const fn settled(outcome: Outcome) -> Fate {
        Fate { outcome, settled: true }
    }

    pub(super) const fn finality(self) -> Finality {
        if self.settled { Finality::Settled } else { Finality::Open }
    }

    /// Whether the broker should be asked about it.
    pub(super) fn is_open(self) -> bool {
        self.outcome == Outcome::Unknown && !self.settled
    }
}
