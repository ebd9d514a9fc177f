//! What must hold in every state, and what counts as an end.

use model::outbox::{Outcome, Verdict};

use super::fault::is_over;
use super::row::{Life, Row};
use super::state::{Desk, GUEST, GuestStage, State};
use super::{Outbox, Second};

/// A row is done, or known to be accepted, only when the broker took these very words.
pub const DONE_UNACCEPTED: &str = "done, but the broker did not take these words";
/// One acceptance per member and id, for ever: inside the window the books say so, after it the deadlines.
pub const ACCEPTED_TWICE: &str = "accepted twice under one id";
/// A message goes out under two ids only when somebody insisted and nobody could know.
pub const TWO_IDS: &str = "accepted under two ids although nobody had to risk it";
/// What is recorded of a dead or aborted row is true for ever.
pub const OUTCOME_LIES: &str = "recorded as never accepted, but it was";
/// `unknown` is final only after the window.
pub const UNKNOWN_TOO_EARLY: &str = "unknown for good while the broker still knew";
/// A message is charged once.
pub const TWO_UNITS: &str = "two units of budget for one message";
/// A member that heard yes has its own message in the books.
pub const SWALLOWED: &str = "another member's message was swallowed";
/// An id in the books is never refused for good.
pub const NO_FOR_A_YES: &str = "a final no for an accepted message";
/// The door never frees an id.
pub const ID_FREED: &str = "an id was freed";
/// The door never takes other words for the row's.
pub const WRONG_WORDS: &str = "other words were promised under a used id";
/// Nothing is accepted past its own deadline.
pub const LATE: &str = "accepted after its own deadline";

/// All of them.
pub const INVARIANTS: &[&str] = &[
    DONE_UNACCEPTED,
    ACCEPTED_TWICE,
    TWO_IDS,
    OUTCOME_LIES,
    UNKNOWN_TOO_EARLY,
    TWO_UNITS,
    SWALLOWED,
    NO_FOR_A_YES,
    ID_FREED,
    WRONG_WORDS,
    LATE,
];

impl Outbox {
    pub(super) fn check(&self, s: &State, names: &mut Vec<&'static str>) {
        let truth = &s.truth;
        let mut must_not = |broken: bool, name| names.extend(broken.then_some(name));
        for (id, row) in s.rows.iter().enumerate() {
            let accepted = s.is_accepted(id, row.words);
            // After a restore the broker's books are poorer than what was true, until the rows went again.
            let believed = self.bounds.restores == 0 && is_believed_accepted(row);
            must_not(believed && !accepted, DONE_UNACCEPTED);
            must_not(accepted && is_believed_not_accepted(row), OUTCOME_LIES);
            must_not(is_unknown_too_early(row, s.t), UNKNOWN_TOO_EARLY);
            if row.life != Life::Absent {
                let (same, other) = (self.decide(row, row.words), self.decide(row, 1 - row.words));
                must_not(same == Verdict::Insert || other == Verdict::Insert, ID_FREED);
                must_not(is_yes(&other), WRONG_WORDS);
            }
        }
        let two_ids = s.is_accepted(0, s.rows[0].words) && truth.accepted[1] != 0;
        let succeeded = self.bounds.second == Second::Successor;
        must_not(two_ids && succeeded && !truth.two_ids_allowed, TWO_IDS);
        must_not(truth.accepted_twice, ACCEPTED_TWICE);
        must_not(truth.accepted_late, LATE);
        must_not(truth.no_for_a_yes, NO_FOR_A_YES);
        must_not(s.limiter.units.iter().any(|units| *units > 1), TWO_UNITS);
        let told_yes = s.guest.stage == GuestStage::Accepted;
        must_not(told_yes && !s.is_accepted(GUEST, s.guest.words), SWALLOWED);
    }

    /// Whether everything came to an end with a name, and nothing is left to find out.
    pub(super) fn has_ended(&self, s: &State) -> bool {
        let ended = |id: usize| match s.rows[id].life {
            Life::Absent => id == 1 && self.bounds.second == Second::Successor,
            Life::Pending | Life::Inflight { .. } => false,
            Life::Done { .. } => self.bounds.restores == 0 || !self.is_lost(s, id),
            Life::Dead(fate) | Life::Aborted(fate) => !fate.is_open(),
        };
        s.desk == Desk::Idle && ended(0) && ended(1)
    }
}

fn is_yes(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Queued | Verdict::Inflight | Verdict::Duplicate(_) => true,
        Verdict::Insert | Verdict::Conflict(_) => false,
    }
}

fn is_believed_accepted(row: &Row) -> bool {
    let late = row.known().is_some_and(|fate| fate.outcome == Outcome::Accepted);
    late || matches!(row.life, Life::Done { .. })
}

fn is_believed_not_accepted(row: &Row) -> bool {
    row.known().is_some_and(|fate| matches!(fate.outcome, Outcome::NotSent | Outcome::NotAccepted))
}

fn is_unknown_too_early(row: &Row, now: u8) -> bool {
    let for_good = row.known().is_some_and(|fate| fate.outcome == Outcome::Unknown && fate.settled);
    for_good && row.first_attempt_at.is_some_and(|first| !is_over(first, now))
}
