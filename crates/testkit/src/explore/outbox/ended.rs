//! The daemon's side of rows that ended: questions about those nobody knows of, and driving again what a
//! restored broker lost.

use model::outbox::{Learnt, Outcome, Redrive};

use super::Outbox;
use super::row::{Fate, Life, Row};
use super::state::{Said, State, Ways};
use super::time::{At, age_max, instant};
use crate::explore::Step;

impl Outbox {
    pub(super) fn ended_steps(&self, s: &State, edges: &mut Ways) {
        for id in 0..2 {
            self.ask_about_ended(s, id, edges);
            self.learn(s, id, edges);
        }
        self.drive_again(s, edges);
    }

    fn ask_about_ended(&self, s: &State, id: usize, edges: &mut Ways) {
        let row = s.rows[id];
        let open = row.known().is_some_and(Fate::is_open) && s.words[id].is_none();
        let (true, Some(first)) = (open && self.rules.habits.asks_about_ended, row.first_attempt_at) else {
            return;
        };
        let mut n = *s;
        n.words[id] = Some(self.question(&mut n, id, row.words, first));
        edges.protocol(Step::to("the broker is asked about the ended row", id), n);
    }

    fn learn(&self, s: &State, id: usize, edges: &mut Ways) {
        let (Some(said), Some(status)) = (s.words[id], s.rows[id].status()) else { return };
        let mut n = *s;
        n.words[id] = None;
        edges.fault(Step::to("the broker's word is lost", id), n);
        let open = s.rows[id].known().is_some_and(Fate::is_open);
        match (self.rules.learn)(status, said.answer()) {
            Learnt::Done(receipt) => self.done(&mut n, id, At::of(receipt.accepted_at)),
            Learnt::LateAck(_) => self.late_ack(&mut n, id),
            // What is known already stays.
            Learnt::NotAccepted if open => n.rows[id].settle(Outcome::NotAccepted),
            Learnt::Final if open => {
                n.rows[id].settle(Outcome::Unknown);
                n.truth.two_ids_allowed |= id == 0 && s.rows[1].life != Life::Absent;
            }
            Learnt::NotAccepted | Learnt::Final | Learnt::Nothing => {}
        }
        edges.protocol(Step::to(news(said), id), n);
    }

    /// On connect the broker is shown what it accepted lately; when it lacks some of it, all of that goes again.
    fn drive_again(&self, s: &State, edges: &mut Ways) {
        let lost = (0..2).any(|id| self.is_lost(s, id));
        if !self.rules.habits.redrives || self.bounds.restores == 0 || !lost {
            return;
        }
        let mut n = *s;
        for id in 0..2 {
            if let Some(first) = self.again(s, id) {
                n.rows[id].life = Life::Pending;
                n.rows[id].first_attempt_at = Some(first);
            }
        }
        edges.protocol(Step::of("connected: the broker was restored, what it had accepted goes again"), n);
    }

    /// Whether the broker has no trace of a done row that is young enough to be remembered.
    pub(super) fn is_lost(&self, s: &State, id: usize) -> bool {
        let held = s.books[id].is_some_and(|entry| !entry.retired && entry.words == s.rows[id].words);
        !held && self.again(s, id).is_some()
    }

    /// The first attempt a done row takes when it is driven again.
    fn again(&self, s: &State, id: usize) -> Option<At> {
        let Life::Done { accepted_at } = s.rows[id].life else { return None };
        let now = instant(s.t);
        match (self.rules.redrive)(accepted_at.instant(), self.deliver_by(), now, age_max()) {
            Redrive::Again { first_attempt_at } => Some(At::of(first_attempt_at)),
            Redrive::Leave => None,
        }
    }
}

impl Row {
    fn settle(&mut self, outcome: Outcome) {
        match &mut self.life {
            Life::Dead(fate) | Life::Aborted(fate) => *fate = Fate::settled(outcome),
            Life::Absent | Life::Pending | Life::Inflight { .. } | Life::Done { .. } => {}
        }
    }
}

fn news(said: Said) -> &'static str {
    match said {
        Said::Accepted { .. } => "the broker says it was accepted",
        Said::OtherFingerprint => "the broker says other words were accepted",
        Said::Retired => "the broker says the id was retired before",
        Said::Absent => "the broker says it never came, and retires the id",
        Said::Unknown => "the broker may have forgotten it",
    }
}
