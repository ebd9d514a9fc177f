//! The broker's side: look-up, limiter, the transaction that accepts, and questions about ids.

use model::admission::{Fence, Known, LookUp};
use model::outbox::{Answer, Move, Patience, Status};
use model::{ErrorCode, Timestamp};

use super::Outbox;
use super::state::{CODES, Copied, Entry, GUEST, GuestStage, Said, State, Ways, Whose, Work, place};
use super::time::{At, WINDOW, age_max, fingerprint, instant};
use crate::explore::Step;

/// What the broker says to one copy.
#[derive(Clone, Copy)]
enum Say {
    Accepted(At),
    Refused(ErrorCode),
}

impl Outbox {
    pub(super) fn broker_steps(&self, s: &State, edges: &mut Ways) {
        for id in 0..2 {
            for lease in 0..2 {
                self.receive(s, id, lease, edges);
            }
        }
        self.receive_guest(s, edges);
        for worker in 0..self.bounds.workers {
            self.charge(s, worker, edges);
            self.transact(s, worker, edges);
        }
    }

    /// A copy reaches the broker; the network may keep another.
    fn receive(&self, s: &State, id: usize, lease: u8, edges: &mut Ways) {
        let slot = usize::from(lease);
        let Some(copy) = s.copies[id][slot] else { return };
        let mut n = *s;
        n.copies[id][slot] = None;
        edges.fault(Step::to("a copy is lost", id), n);
        let work = self.work_on(id, lease, copy);
        if let Some(n) = self.look_up(n, work) {
            edges.protocol(Step::to("the broker looks a copy up", id), n);
        }
        if s.left.doubled > 0 {
            let mut n = *s;
            n.left.doubled -= 1;
            if let Some(n) = self.look_up(n, work) {
                edges.fault(Step::to("a copy is doubled, and the broker looks it up", id), n);
            }
        }
        if !self.rules.habits.look_up_is_fresh
            && let Some(n) = self.begin_work(n, work)
        {
            edges.protocol(Step::to("the broker looks a copy up in stale books", id), n);
        }
    }

    fn work_on(&self, id: usize, lease: u8, copy: Copied) -> Work {
        let whose = Whose::Row { id: place(id), lease };
        Work { whose, words: copy.words, send_deadline: Some(copy.send_deadline), granted: false }
    }

    fn receive_guest(&self, s: &State, edges: &mut Ways) {
        let mut n = *s;
        match s.guest.stage {
            GuestStage::Silent if self.bounds.guest => {
                n.guest.stage = GuestStage::OnTheWay;
                edges.protocol(Step::of("another member sends with the same text of an id"), n);
            }
            GuestStage::OnTheWay => {
                n.guest.stage = GuestStage::AtWork;
                let words = s.guest.words;
                let work = Work { whose: Whose::Guest, words, send_deadline: None, granted: false };
                if let Some(n) = self.look_up(n, work) {
                    edges.protocol(Step::of("the broker looks the other member's message up"), n);
                }
            }
            GuestStage::Silent | GuestStage::AtWork | GuestStage::Accepted | GuestStage::Refused => {}
        }
    }

    /// B0. `None` while every process is busy.
    fn look_up(&self, mut n: State, work: Work) -> Option<State> {
        match self.known_answer(&n, &work) {
            None => self.begin_work(n, work),
            Some(say) => {
                self.answer(&mut n, &work, say);
                Some(n)
            }
        }
    }

    fn begin_work(&self, mut n: State, mut work: Work) -> Option<State> {
        let free = n.workers[..self.bounds.workers].iter().position(Option::is_none)?;
        // Where nothing is refused for its budget, charging is no step of its own.
        if !self.bounds.limiter {
            self.grant(&mut n, &mut work);
        }
        n.workers[free] = Some(work);
        Some(n)
    }

    fn known_answer(&self, s: &State, work: &Work) -> Option<Say> {
        let known = self.known(s, work.whose);
        match (self.rules.look_up)(known.as_ref(), &fingerprint(work.words)) {
            LookUp::Absent => None,
            LookUp::Duplicate { receipt, .. } => Some(Say::Accepted(At::of(receipt.accepted_at))),
            LookUp::Mismatch { .. } => Some(Say::Refused(ErrorCode::IdempotencyKeyReused)),
            LookUp::Retired => Some(Say::Refused(ErrorCode::IdRetired)),
        }
    }

    fn known(&self, s: &State, whose: Whose) -> Option<Known> {
        s.books[self.key(whose)].map(|entry| entry.known())
    }

    /// The place of an id's dedupe row.
    fn key(&self, whose: Whose) -> usize {
        match whose {
            Whose::Row { id, .. } => usize::from(id),
            Whose::Guest if self.rules.habits.key_names_sender => GUEST,
            Whose::Guest => 0,
        }
    }

    fn charge(&self, s: &State, worker: usize, edges: &mut Ways) {
        let Some(mut work) = s.workers[worker].filter(|work| !work.granted) else { return };
        let mut n = *s;
        if !s.limiter.marked[spender(work.whose)] {
            n.workers[worker] = None;
            self.answer(&mut n, &work, Say::Refused(ErrorCode::RateLimited));
            edges.fault(step("the limiter refuses", work.whose), n);
            n = *s;
        }
        self.grant(&mut n, &mut work);
        n.workers[worker] = Some(work);
        edges.protocol(step("the limiter lets it pass", work.whose), n);
    }

    fn grant(&self, n: &mut State, work: &mut Work) {
        work.granted = true;
        let spender = spender(work.whose);
        if !n.limiter.marked[spender] {
            n.limiter.units[spender] = (n.limiter.units[spender] + 1).min(2);
            n.limiter.marked[spender] = self.rules.habits.charges_once;
        }
    }

    fn transact(&self, s: &State, worker: usize, edges: &mut Ways) {
        let Some(work) = s.workers[worker].filter(|work| work.granted) else { return };
        let mut n = *s;
        n.workers[worker] = None;
        if let Some(say) = self.known_answer(s, &work).or_else(|| self.refusal(s, &work)) {
            self.answer(&mut n, &work, say);
            edges.protocol(step("the transaction finds an answer", work.whose), n);
            return;
        }
        self.accept(&mut n, &work);
        if !self.rules.habits.dedupe_in_transaction && s.left.broker_crashes > 0 {
            let mut n = n;
            n.left.broker_crashes -= 1;
            n.workers = [None; 2];
            n.drop_links();
            edges.fault(step("accepted; the broker crashes before the dedupe row", work.whose), n);
        }
        let at = At::day(s.t);
        n.books[self.key(work.whose)] = Some(Entry::accepted(work.words, at));
        self.answer(&mut n, &work, Say::Accepted(at));
        edges.protocol(step("the broker ACCEPTS", work.whose), n);
    }

    /// B2.
    fn refusal(&self, s: &State, work: &Work) -> Option<Say> {
        let now = instant(s.t);
        let send_deadline = work.send_deadline.map(At::instant);
        let in_time = (self.rules.check_time)(now, send_deadline, self.deliver_by(), age_max());
        match (in_time, work.whose) {
            (Err(code), _) => Some(Say::Refused(code)),
            (Ok(()), Whose::Row { .. }) if !s.reachable => Some(Say::Refused(ErrorCode::MemberNotFound)),
            (Ok(()), Whose::Row { .. } | Whose::Guest) => None,
        }
    }

    fn accept(&self, n: &mut State, work: &Work) {
        let spender = spender(work.whose);
        n.truth.accepted_twice |= n.is_accepted(spender, work.words);
        n.truth.accepted[spender] |= 1 << work.words;
        let now = instant(n.t);
        n.truth.accepted_late |= self.deliver_by().is_some_and(|deliver_by: Timestamp| now >= deliver_by);
    }

    fn answer(&self, n: &mut State, work: &Work, say: Say) {
        if let Say::Refused(code) = say {
            n.truth.no_for_a_yes |= self.denies_what_was_accepted(n, work, code);
        }
        match work.whose {
            Whose::Guest => {
                n.guest.stage = match say {
                    Say::Accepted(_) => GuestStage::Accepted,
                    Say::Refused(_) => GuestStage::Refused,
                }
            }
            Whose::Row { id, lease } => {
                let answers = &mut n.answers[usize::from(id)][usize::from(lease)];
                answers.words = work.words;
                match say {
                    Say::Accepted(at) => answers.accepted_at = Some(at),
                    Say::Refused(code) => {
                        let bit = CODES.iter().position(|known| *known == code);
                        answers.refused |= 1 << bit.expect("every refusal of this world is listed");
                    }
                }
            }
        }
    }

    /// Whether a row would be given up for this answer although its dedupe row says that it was accepted.
    fn denies_what_was_accepted(&self, s: &State, work: &Work, code: ErrorCode) -> bool {
        let accepted = s.is_accepted(spender(work.whose), work.words)
            && s.books[self.key(work.whose)].is_some_and(|entry| !entry.retired && entry.words == work.words);
        let refused = Answer::Refused(code);
        accepted
            && matches!(
                (self.rules.settle)(Status::Inflight, true, refused, Patience::default()),
                Move::Bury(..)
            )
    }

    /// `message_status` with a fence: asking and retiring are one step at the broker.
    pub(super) fn question(&self, n: &mut State, id: usize, words: u8, first_attempt_at: At) -> Said {
        let known = n.books[id].map(|entry| entry.known());
        let now = instant(n.t);
        let asked = fingerprint(words);
        let answer =
            (self.rules.message_status)(known.as_ref(), &asked, first_attempt_at.instant(), WINDOW, now);
        let at = At::day(n.t);
        match ((self.rules.fence)(answer), &mut n.books[id]) {
            (Fence::Retire, book) => *book = Some(Entry::retired(words, at)),
            (Fence::Keep, Some(entry)) => entry.kept_from = entry.kept_from.max(at),
            (Fence::Keep, None) | (Fence::Nothing, _) => {}
        }
        Said::of(answer)
    }
}

/// Who pays.
fn spender(whose: Whose) -> usize {
    match whose {
        Whose::Row { id, .. } => usize::from(id),
        Whose::Guest => GUEST,
    }
}

fn step(words: &'static str, whose: Whose) -> Step {
    Step::to(words, spender(whose))
}
