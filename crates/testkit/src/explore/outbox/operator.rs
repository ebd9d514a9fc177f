//! The operator's side: hold, ask, then replace or leave; abort at once.

use model::operator::{Asking, Doubt, Finality, Requeue, Uncertainty, Untouchable, Word};

use super::row::{Fate, Life, Row};
use super::state::{Desk, Said, State, Ways};
use super::time::At;
use super::{Outbox, Second};
use crate::explore::Step;

impl Outbox {
    pub(super) fn operator_steps(&self, s: &State, edges: &mut Ways) {
        match s.desk {
            Desk::Idle => {
                let first = self.bounds.second == Second::Successor && s.rows[1].life == Life::Absent;
                if s.left.operations > 0 && first {
                    self.begin(s, edges);
                    self.abort(s, edges);
                }
            }
            Desk::Asking => self.ask(s, edges),
            Desk::Heard(said) => self.replace(s, Word::Told(said.answer()), edges),
            Desk::Unheard => self.replace(s, Word::Silence, edges),
        }
    }

    fn begin(&self, s: &State, edges: &mut Ways) {
        let row = s.rows[0];
        let Some(state) = row.state() else { return };
        let asking = (self.rules.asking)(&state, row.first_attempt_at.map(At::instant));
        let mut n = *s;
        n.left.operations -= 1;
        n.rows[0].held = true;
        match asking {
            Err(Untouchable::Inflight | Untouchable::Accepted(_) | Untouchable::Aborted { .. }) => {}
            Ok(Asking::NotNeeded) => {
                n.desk = Desk::Unheard;
                edges.fault(Step::to("an operator wants it requeued; nobody needs to be asked", 0), n);
            }
            Ok(Asking::Needed { .. }) => {
                n.desk = Desk::Asking;
                edges.fault(Step::to("an operator wants it requeued; the row is held", 0), n);
            }
        }
    }

    fn abort(&self, s: &State, edges: &mut Ways) {
        let row = s.rows[0];
        let Some(state) = row.state() else { return };
        if let Ok(outcome) = (self.rules.abort)(&state, row.first_attempt_at.map(At::instant)) {
            let mut n = *s;
            n.left.operations -= 1;
            let settled = row.known().is_some_and(|fate| fate.settled);
            n.rows[0].life = Life::Aborted(Fate { outcome, settled });
            edges.fault(Step::to("an operator aborts it", 0), n);
        }
    }

    fn ask(&self, s: &State, edges: &mut Ways) {
        let mut silent = *s;
        silent.desk = Desk::Unheard;
        edges.fault(Step::to("the operator's question does not get through", 0), silent);
        let row = s.rows[0];
        let Some(first) = row.first_attempt_at else {
            edges.protocol(Step::to("there is nothing to ask about", 0), silent);
            return;
        };
        let mut n = *s;
        let said = self.question(&mut n, 0, row.words, first);
        n.desk = Desk::Unheard;
        edges.fault(Step::to("the operator's question gets through, the word back does not", 0), n);
        n.desk = Desk::Heard(said);
        edges.protocol(Step::to(heard(said), 0), n);
    }

    fn replace(&self, s: &State, word: Word, edges: &mut Ways) {
        let row = s.rows[0];
        let mut n = *s;
        n.desk = Desk::Idle;
        n.rows[0].held = false;
        let first = row.first_attempt_at.map(At::instant);
        let broken = self.rules.habits.hold_is_checked && !row.held;
        let Some(state) = row.state().filter(|_| !broken) else {
            edges.protocol(Step::to("the hold was broken; the requeue is refused", 0), n);
            return;
        };
        for doubt in [Doubt::Refuse, Doubt::Force] {
            match (self.rules.requeue)(&state, first, word, doubt) {
                Err(_) => edges.protocol(Step::to("the row moved on; the requeue is refused", 0), n),
                Ok(Requeue::NeedsForce(_)) => {
                    edges.protocol(Step::to("nobody knows; the requeue is refused", 0), n);
                }
                Ok(Requeue::AlreadyAccepted(receipt)) => {
                    let mut n = n;
                    self.done(&mut n, 0, At::of(receipt.accepted_at));
                    edges.protocol(Step::to("it was accepted: done, no successor", 0), n);
                }
                Ok(Requeue::Replace { outcome, finality }) => {
                    let settled = finality == Finality::Settled;
                    n.rows[0].life = Life::Aborted(Fate { outcome, settled });
                    let unforced = (self.rules.requeue)(&state, first, word, Doubt::Refuse);
                    self.succeed(&n, doubt, unforced, edges);
                }
            }
        }
    }

    /// The successor, with the same words or, where the operator insists anyway, with others.
    fn succeed(&self, n: &State, doubt: Doubt, unforced: Result<Requeue, Untouchable>, edges: &mut Ways) {
        let mut same = *n;
        same.rows[1] = Row::pending(n.rows[0].words);
        // Whoever insists although the broker may have forgotten it has accepted a second copy.
        let needs_force = match unforced {
            Ok(Requeue::NeedsForce(why)) => Some(why),
            Ok(Requeue::Replace { .. } | Requeue::AlreadyAccepted(_)) | Err(_) => None,
        };
        same.truth.two_ids_allowed |= needs_force == Some(Uncertainty::WindowPassed);
        match (doubt, needs_force) {
            (Doubt::Refuse, _) => edges.protocol(Step::to("requeued under a new id", 0), same),
            (Doubt::Force, None) => {}
            (Doubt::Force, Some(_)) => {
                edges.fault(Step::to("requeued under a new id by force", 0), same);
                if self.bounds.patches {
                    let mut other = same;
                    other.rows[1].words = 1 - other.rows[1].words;
                    other.truth.two_ids_allowed = true;
                    edges.fault(Step::to("requeued under a new id by force, with other words", 0), other);
                }
            }
        }
    }
}

fn heard(said: Said) -> &'static str {
    match said {
        Said::Accepted { .. } => "the operator hears: accepted",
        Said::OtherFingerprint => "the operator hears: other words accepted",
        Said::Retired => "the operator hears: retired before",
        Said::Absent => "the operator hears: never came, and now retired",
        Said::Unknown => "the operator hears: perhaps forgotten",
    }
}
