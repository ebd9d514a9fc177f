//! Everything there is to know of such a world at one moment, in a few dozen bytes.

use std::fmt;

use model::ErrorCode;
use model::admission::{Known, KnownState, StatusAnswer};

use super::Bounds;
use super::row::Row;
use super::time::{At, fingerprint, receipt};
use crate::explore::Edges;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Broker time, in days.
    pub(super) t: u8,
    pub(super) rows: [Row; 2],
    /// Copies on the way, by id and lease.
    pub(super) copies: [[Option<Copied>; 2]; 2],
    /// Copies at work, past the look-up.
    pub(super) workers: [Option<Work>; 2],
    /// Answers on the way, by id and lease.
    pub(super) answers: [[Answers; 2]; 2],
    /// The broker's words on ended rows, on the way.
    pub(super) words: [Option<Said>; 2],
    /// The dedupe table.
    pub(super) books: [Option<Entry>; 3],
    pub(super) limiter: Limiter,
    pub(super) desk: Desk,
    pub(super) guest: Guest,
    /// Whether the destination is there.
    pub(super) reachable: bool,
    pub(super) left: Left,
    pub(super) truth: Truth,
}

/// The ways on from a state.
pub(super) type Ways = Edges<State>;

/// A copy of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Copied {
    pub(super) words: u8,
    pub(super) send_deadline: At,
}

/// A copy a broker process has looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Work {
    pub(super) whose: Whose,
    pub(super) words: u8,
    /// A guest speaks for itself and promises none.
    pub(super) send_deadline: Option<At>,
    /// Whether the limiter let it pass.
    pub(super) granted: bool,
}

/// Whose copy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    Row { id: u8, lease: u8 },
    Guest,
}

/// What the broker answered to the copies of one claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Answers {
    /// The words it answered to.
    pub(super) words: u8,
    pub(super) accepted_at: Option<At>,
    /// A bit for each of [`CODES`].
    pub(super) refused: u8,
}

/// The refusals of such a world.
pub(super) const CODES: [ErrorCode; 6] = [
    ErrorCode::RateLimited,
    ErrorCode::MemberNotFound,
    ErrorCode::SendDeadlinePassed,
    ErrorCode::DeliverByPassed,
    ErrorCode::IdRetired,
    ErrorCode::IdempotencyKeyReused,
];

/// See [`StatusAnswer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Said {
    Accepted { at: At },
    OtherFingerprint,
    Retired,
    Absent,
    Unknown,
}

/// A row of the dedupe table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) retired: bool,
    pub(super) words: u8,
    pub(super) at: At,
    /// The window counts from here.
    pub(super) kept_from: At,
}

/// Charges since the clock last moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Limiter {
    pub(super) marked: [bool; 3],
    pub(super) units: [u8; 3],
}

/// An operator's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Desk {
    Idle,
    Asking,
    Heard(Said),
    Unheard,
}

/// The other member, who sends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Guest {
    pub(super) words: u8,
    pub(super) stage: GuestStage,
}

/// See [`Guest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GuestStage {
    Silent,
    OnTheWay,
    AtWork,
    Accepted,
    Refused,
}

/// Faults and wishes not yet used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) crashes: u8,
    pub(super) broker_crashes: u8,
    pub(super) doubled: u8,
    pub(super) vanishings: u8,
    pub(super) operations: u8,
    pub(super) wipes: u8,
    pub(super) restores: u8,
}

/// What an observer of everything would know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Truth {
    /// Words accepted and still held, a bit each: id 0, id 1, the guest's.
    pub(super) accepted: [u8; 3],
    /// Somebody insisted although nobody could know, or the words differ.
    pub(super) two_ids_allowed: bool,
    pub(super) accepted_twice: bool,
    pub(super) accepted_late: bool,
    pub(super) no_for_a_yes: bool,
}

/// The lease of a row on the wire whose claim was forgotten.
pub(super) const NOBODYS: u8 = 2;

/// The guest's place beside the ids.
pub(super) const GUEST: usize = 2;

impl State {
    pub(super) fn start(bounds: &Bounds) -> State {
        State {
            t: 0,
            rows: [Row::ABSENT; 2],
            copies: [[None; 2]; 2],
            workers: [None; 2],
            answers: [[Answers::default(); 2]; 2],
            words: [None; 2],
            books: [None; 3],
            limiter: Limiter::default(),
            desk: Desk::Idle,
            guest: Guest { words: 0, stage: GuestStage::Silent },
            reachable: true,
            left: Left {
                crashes: bounds.crashes,
                broker_crashes: bounds.broker_crashes,
                doubled: bounds.doubled,
                vanishings: bounds.vanishings,
                operations: bounds.operations,
                wipes: bounds.wipes,
                restores: bounds.restores,
            },
            truth: Truth::default(),
        }
    }

    /// Whether the broker took these words under this id, and still has them.
    pub(super) fn is_accepted(&self, place: usize, words: u8) -> bool {
        self.truth.accepted[place] & (1 << words) != 0
    }

    /// Links are gone, and all that was on its way back.
    pub(super) fn drop_links(&mut self) {
        self.answers = Default::default();
        self.words = [None; 2];
    }

    /// Whether nothing of an older claim is under way under this lease.
    pub(super) fn is_free(&self, id: usize, lease: u8) -> bool {
        let whose = Whose::Row { id: place(id), lease };
        self.copies[id][usize::from(lease)].is_none()
            && self.answers[id][usize::from(lease)].is_empty()
            && self.workers.iter().flatten().all(|work| work.whose != whose)
    }
}

/// An id as a copy carries it.
pub(super) fn place(id: usize) -> u8 {
    u8::try_from(id).expect("there are two ids")
}

impl Answers {
    pub(super) fn is_empty(&self) -> bool {
        self.accepted_at.is_none() && self.refused == 0
    }

    /// The refusals among them.
    pub(super) fn codes(self) -> impl Iterator<Item = (u8, ErrorCode)> {
        (0_u8..).zip(CODES).filter(move |(bit, _)| self.refused & (1 << bit) != 0)
    }
}

impl Said {
    pub(super) fn of(answer: StatusAnswer) -> Said {
        match answer {
            StatusAnswer::Accepted(receipt) => Said::Accepted { at: At::of(receipt.accepted_at) },
            StatusAnswer::AcceptedOtherFingerprint => Said::OtherFingerprint,
            StatusAnswer::Retired => Said::Retired,
            StatusAnswer::Absent => Said::Absent,
            StatusAnswer::Unknown => Said::Unknown,
        }
    }

    pub(super) fn answer(self) -> StatusAnswer {
        match self {
            Said::Accepted { at } => StatusAnswer::Accepted(receipt(at)),
            Said::OtherFingerprint => StatusAnswer::AcceptedOtherFingerprint,
            Said::Retired => StatusAnswer::Retired,
            Said::Absent => StatusAnswer::Absent,
            Said::Unknown => StatusAnswer::Unknown,
        }
    }
}

impl Entry {
    pub(super) const fn accepted(words: u8, at: At) -> Entry {
        Entry { retired: false, words, at, kept_from: at }
    }

    pub(super) const fn retired(words: u8, at: At) -> Entry {
        Entry { retired: true, words, at, kept_from: at }
    }

    /// As the rules see it.
    pub(super) fn known(&self) -> Known {
        let state = if self.retired {
            KnownState::Retired
        } else {
            KnownState::Accepted { receipt: receipt(self.at), history_available: true }
        };
        Known { fingerprint: fingerprint(self.words), state }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "day {}", self.t)?;
        for (id, row) in self.rows.iter().enumerate() {
            let Some(status) = row.status() else { continue };
            write!(f, "; id {id} {status}")?;
            if let Some(known) = row.known() {
                write!(f, " ({}{})", known.outcome, if known.settled { ", for good" } else { "" })?;
            }
            if self.is_accepted(id, row.words) {
                f.write_str(", accepted by the broker")?;
            } else if self.truth.accepted[id] != 0 {
                f.write_str(", other words accepted by the broker")?;
            }
        }
        if self.truth.accepted_twice {
            f.write_str("; accepted twice")?;
        }
        Ok(())
    }
}
