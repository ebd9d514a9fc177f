//! The daemon's side while a row is under way: callers, courier, settlements.

use model::outbox::{Answer, Claim, Found, Move, Outcome, Patience, Verdict};
use model::{Class, ErrorCode, Timestamp, limits};

use super::row::{Fate, Life, Row};
use super::rules::Clock;
use super::state::{Copied, State, Ways};
use super::time::{At, age_max, fingerprint, instant, receipt};
use super::{Outbox, Second};
use crate::explore::Step;

impl Outbox {
    pub(super) fn daemon_steps(&self, s: &State, edges: &mut Ways) {
        self.send(s, edges);
        for id in 0..2 {
            self.take(s, id, edges);
            self.time_out(s, id, edges);
            for lease in 0..2 {
                self.hear(s, id, lease, edges);
            }
        }
    }

    /// When every message's own deadline passes.
    pub(super) fn deliver_by(&self) -> Option<Timestamp> {
        self.bounds.deliver_by.map(instant)
    }

    /// The time the daemon goes by.
    pub(super) fn daemon_now(&self, s: &State) -> u8 {
        match self.rules.habits.clock {
            Clock::Broker => s.t,
            Clock::Own if s.left.crashes == self.bounds.crashes => s.t + 6,
            Clock::Own => s.t,
        }
    }

    fn send(&self, s: &State, edges: &mut Ways) {
        // After a wipe the caller uses its id for other words.
        let words = u8::from(s.left.wipes < self.bounds.wipes);
        let ids = match self.bounds.second {
            Second::Successor => 1,
            Second::Send => 2,
        };
        for id in 0..ids {
            if s.rows[id].life == Life::Absent && self.decide(&s.rows[id], words) == Verdict::Insert {
                let mut n = *s;
                n.rows[id] = Row::pending(words);
                edges.protocol(Step::to("a caller sends; queued", id), n);
            }
        }
    }

    /// What the door says to these words under the row's id.
    pub(super) fn decide(&self, row: &Row, words: u8) -> Verdict {
        let found = row.state().map(|state| Found { fingerprint: fingerprint(row.words), state });
        (self.rules.decide)(found.as_ref(), &fingerprint(words))
    }

    fn take(&self, s: &State, id: usize, edges: &mut Ways) {
        let row = s.rows[id];
        if row.life != Life::Pending || self.waits(s, id) {
            return;
        }
        let first = row.first_attempt_at.map(At::instant);
        let now = instant(self.daemon_now(s));
        let mut n = *s;
        match (self.rules.claim)(first, self.deliver_by(), now, age_max()) {
            Claim::GiveUp(_, outcome) => {
                n.rows[id].life = Life::Dead(Fate::open(outcome));
                edges.protocol(Step::to("its time is over: dead", id), n);
            }
            Claim::Go { first_attempt_at, send_deadline } => {
                let Some(lease) = (0..2).find(|lease| s.is_free(id, *lease)) else { return };
                n.rows[id].life = Life::Inflight { lease };
                n.rows[id].held = false;
                if self.rules.habits.first_attempt_before_sending {
                    n.rows[id].first_attempt_at = Some(At::of(first_attempt_at));
                }
                n.copies[id][usize::from(lease)] =
                    Some(Copied { words: row.words, send_deadline: At::of(send_deadline) });
                edges.protocol(Step::to("claimed and on its way", id), n);
            }
        }
    }

    /// Whether a successor's first copy waits for the broker's word on the row it replaces.
    fn waits(&self, s: &State, id: usize) -> bool {
        let first_copy = s.rows[id].first_attempt_at.is_none();
        id == 1
            && first_copy
            && s.rows[0].known().is_some_and(|fate| (self.rules.waits_for)(fate.outcome, fate.finality()))
    }

    fn time_out(&self, s: &State, id: usize, edges: &mut Ways) {
        if let Life::Inflight { lease: 0 | 1 } = s.rows[id].life {
            let mut n = *s;
            self.apply(&mut n, id, true, Answer::Lost, Patience::default());
            edges.protocol(Step::to("no answer came in time", id), n);
        }
    }

    fn hear(&self, s: &State, id: usize, lease: u8, edges: &mut Ways) {
        let answers = s.answers[id][usize::from(lease)];
        let holds_lease = s.rows[id].life == Life::Inflight { lease };
        if let Some(at) = answers.accepted_at {
            let mut n = *s;
            n.answers[id][usize::from(lease)].accepted_at = None;
            edges.fault(Step::to("the yes is lost", id), n);
            if self.is_for(s, id, answers.words) {
                self.apply(&mut n, id, holds_lease, Answer::Accepted(receipt(at)), Patience::default());
            }
            edges.protocol(Step::to("the yes arrives", id), n);
        }
        for (bit, code) in answers.codes() {
            let mut n = *s;
            n.answers[id][usize::from(lease)].refused &= !(1 << bit);
            edges.fault(Step::to("the no is lost", id), n);
            let mut patient = n;
            self.apply(&mut patient, id, holds_lease, Answer::Refused(code), Patience::default());
            edges.protocol(Step::to(refusal(code), id), patient);
            // The destination may have been unknown for an hour by now.
            let spent = Patience { gone_for: Some(limits::DESTINATION_GONE_AFTER), ..Patience::default() };
            self.apply(&mut n, id, holds_lease, Answer::Refused(code), spent);
            if n != patient {
                edges.protocol(Step::to("the hour for a destination is over", id), n);
            }
        }
    }

    /// Whether an answer to these words is the row's.
    fn is_for(&self, s: &State, id: usize, words: u8) -> bool {
        s.rows[id].life != Life::Absent
            && (!self.rules.habits.answers_name_words || s.rows[id].words == words)
    }

    fn apply(&self, n: &mut State, id: usize, holds_lease: bool, answer: Answer, patience: Patience) {
        let Some(status) = n.rows[id].status() else { return };
        let did = (self.rules.settle)(status, holds_lease, answer, patience);
        if !self.rules.habits.first_attempt_before_sending && did != Move::Nothing {
            let now = At::day(self.daemon_now(n));
            n.rows[id].first_attempt_at.get_or_insert(now);
        }
        match did {
            Move::Done(receipt) => self.done(n, id, At::of(receipt.accepted_at)),
            Move::LateAck(_) => self.late_ack(n, id),
            Move::Bury(_, outcome) => n.rows[id].life = Life::Dead(Fate::open(outcome)),
            Move::Retry | Move::Release => n.rows[id].life = Life::Pending,
            Move::Nothing => {}
        }
    }

    pub(super) fn done(&self, n: &mut State, id: usize, accepted_at: At) {
        n.rows[id].life = Life::Done { accepted_at };
    }

    pub(super) fn late_ack(&self, n: &mut State, id: usize) {
        n.rows[id].life = Life::Aborted(Fate::settled(Outcome::Accepted));
        let same_words = n.rows[1].words == n.rows[0].words;
        let first = n.rows[1].first_attempt_at.map(At::instant);
        let retired = n.rows[1]
            .status()
            .is_some_and(|status| (self.rules.retires_successor)(status, first, same_words));
        if id == 0 && self.bounds.second == Second::Successor && retired {
            n.rows[1].life = Life::Aborted(Fate::settled(Outcome::NotSent));
        }
    }
}

fn refusal(code: ErrorCode) -> &'static str {
    match code.class() {
        Class::Permanent => "a no for good arrives",
        Class::Transient => "a no for now arrives",
        Class::Conditional => "the destination is said to be unknown",
    }
}
