//! What must hold in every state, and what counts as an end.

use model::relay::{Outcome, Status};

use super::Envelope;
use super::state::{FIRST, SECOND, SUCCESSOR, State};

/// A receipt means: stored.
pub const LOST: &str = "a receipt was given, and nothing stands for it";
/// A key's effect happens once; a successor's instead of its predecessor's.
pub const TWICE: &str = "applied twice, and nobody accepted that";
/// Writes of one resource are applied in their order.
pub const OVERTAKEN: &str = "an older write was applied after a newer one";
/// What somebody else wrote is changed only by who may have known of it.
pub const OVERWRITTEN: &str = "another's write was overwritten unseen";
/// Done means: applied.
pub const DONE_NOT_APPLIED: &str = "done, but not applied";
/// Any other end that claims to know means: not applied.
pub const ENDED_BUT_APPLIED: &str = "ended as not applied, but applied";
/// What a person withdrew does not come back.
pub const CAME_BACK: &str = "withdrawn, and sent again";
/// A write that cannot be parked does not pass those that are.
pub const PASSED_BY: &str = "a write passed by others that waited";
/// Nor does it arrive late over those that came after it.
pub const PASSING_OVERWROTE: &str = "a delayed passing write undid a later one";

/// All of them.
pub const INVARIANTS: &[&str] = &[
    LOST,
    TWICE,
    OVERTAKEN,
    OVERWRITTEN,
    DONE_NOT_APPLIED,
    ENDED_BUT_APPLIED,
    CAME_BACK,
    PASSED_BY,
    PASSING_OVERWROTE,
];

impl Envelope {
    pub(super) fn check(&self, s: &State, names: &mut Vec<&'static str>) {
        let applied = s.hub.applied;
        let both = applied[FIRST] > 0 && applied[SUCCESSOR] > 0 && !s.forced;
        let ended = |row: usize| s.rows[row].map(|envelope| (envelope.status, envelope.outcome));
        let done_not_applied = |row| matches!(ended(row), Some((Status::Done, _))) && applied[row] == 0;
        let denied = |row| {
            let ended = matches!(
                ended(row),
                Some((
                    Status::Conflict
                        | Status::Rejected
                        | Status::Expired
                        | Status::Cancelled
                        | Status::Superseded,
                    Outcome::NotSent | Outcome::NotCommitted
                ))
            );
            ended && applied[row] > 0
        };
        let rows = [FIRST, SECOND, SUCCESSOR];
        let mut must_not = |broken: bool, name| names.extend(broken.then_some(name));
        must_not(s.wrong.lost, LOST);
        must_not(both || applied.iter().any(|times| *times > 1), TWICE);
        must_not(s.wrong.overtaken, OVERTAKEN);
        must_not(s.wrong.overwritten, OVERWRITTEN);
        must_not(rows.into_iter().any(done_not_applied), DONE_NOT_APPLIED);
        must_not(rows.into_iter().any(denied), ENDED_BUT_APPLIED);
        must_not(s.wrong.resurrected, CAME_BACK);
        must_not(s.wrong.passed_by, PASSED_BY);
        must_not(s.wrong.passing_overwrote, PASSING_OVERWROTE);
    }
}

impl State {
    /// Whether every write has an end the product names; behind a conflict others wait for a person.
    pub(super) fn has_ended(&self) -> bool {
        let person = [FIRST, SUCCESSOR]
            .iter()
            .any(|row| self.rows[*row].is_some_and(|envelope| envelope.status == Status::Conflict));
        let unfinished = |row: usize| self.rows[row].is_some_and(|envelope| envelope.status.is_unfinished());
        let first_over = !unfinished(FIRST) && !unfinished(SUCCESSOR);
        first_over && (!unfinished(SECOND) || person)
    }
}
