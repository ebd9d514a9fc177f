//! One form for states that nothing can tell apart any more, so that they are visited once.

use model::outbox::{Answer, Learnt, Move, Outcome, Patience, Status};

use super::Outbox;
use super::row::{Life, Row};
use super::state::{CODES, Said, State};
use super::time::At;

impl Outbox {
    /// One form for states that can never be told apart again.
    pub(super) fn settle_form(&self, n: &mut State) {
        self.settle_books(n);
        for id in 0..2 {
            self.settle_row(n, id);
            for lease in 0..2_u8 {
                self.settle_answers(n, id, lease);
            }
            n.words[id] = n.words[id].filter(|said| self.is_news(&n.rows[id], *said));
        }
    }

    /// When a message was accepted matters only where it may have to be driven again.
    fn settle_books(&self, n: &mut State) {
        if self.bounds.restores == 0 {
            n.books.iter_mut().flatten().for_each(|entry| entry.at = At::day(0));
        }
    }

    fn settle_row(&self, n: &mut State, id: usize) {
        let row = &mut n.rows[id];
        match &mut row.life {
            Life::Done { accepted_at } => {
                row.first_attempt_at = None;
                row.held = false;
                if self.bounds.restores == 0 {
                    *accepted_at = At::day(0);
                }
            }
            Life::Aborted(fate) => {
                row.held = false;
                if !fate.is_open() {
                    row.first_attempt_at = row.first_attempt_at.filter(|_| fate.outcome == Outcome::Unknown);
                }
            }
            Life::Absent | Life::Pending | Life::Inflight { .. } | Life::Dead(_) => {}
        }
    }

    /// Whether the broker's word on a row can still change it.
    fn is_news(&self, row: &Row, said: Said) -> bool {
        let (Some(status), Some(fate)) = (row.status(), row.known()) else { return false };
        match (self.rules.learn)(status, said.answer()) {
            Learnt::Done(_) | Learnt::LateAck(_) => fate.outcome != Outcome::Accepted,
            Learnt::NotAccepted | Learnt::Final => fate.is_open(),
            Learnt::Nothing => false,
        }
    }

    /// Answers that nothing can come of are as good as lost.
    fn settle_answers(&self, n: &mut State, id: usize, lease: u8) {
        let row = n.rows[id];
        let answers = &mut n.answers[id][usize::from(lease)];
        let accepted = matches!(row.life, Life::Done { .. })
            || row.known().is_some_and(|fate| fate.outcome == Outcome::Accepted);
        let foreign = self.rules.habits.answers_name_words && row.words != answers.words;
        if accepted || (foreign && row.life != Life::Absent) {
            answers.accepted_at = None;
        }
        if row.life != (Life::Inflight { lease }) && self.refusals_need_lease() {
            answers.refused = 0;
        }
        if self.bounds.restores == 0 {
            answers.accepted_at = answers.accepted_at.map(|_| At::day(0));
        }
        if answers.is_empty() {
            answers.words = 0;
        }
    }

    fn refusals_need_lease(&self) -> bool {
        let refused = Answer::Refused(CODES[CODES.len() - 1]);
        (self.rules.settle)(Status::Inflight, false, refused, Patience::default()) == Move::Nothing
    }
}
