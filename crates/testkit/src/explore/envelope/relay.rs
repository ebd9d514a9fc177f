//! What the relay does with its envelopes.

use model::relay::{self, Age, Answer, Ending, Move, Outcome, Precondition, Status};

use super::state::{Condition, Copy, FIRST, Row, SECOND, SUCCESSOR, Says, State};
use super::{Envelope, Writes};
use crate::explore::{Edges, Step};

type Ways = Edges<State>;

/// The newest attempt after the first. An answer is of the newest or of an older one, so attempts have no more
/// numbers than that, however many there are.
const NEWEST: u8 = 2;

impl Envelope {
    /// Whether the envelope holds its resource.
    fn holds(&self, s: &State, row: usize) -> bool {
        let Some(envelope) = s.rows[row] else { return false };
        let asking = envelope.ending.is_some() && !self.rules.asking_holds;
        let conflict = envelope.status == Status::Conflict
            && self.rules.conflict_holds
            && self.bounds.writes == Writes::Replace;
        (envelope.status.is_unfinished() && !asking) || conflict
    }

    /// Whether anything of the resource is unfinished.
    pub(super) fn waits(&self, s: &State) -> bool {
        (0..s.rows.len()).any(|row| self.holds(s, row))
    }

    fn is_blocked(&self, s: &State, row: usize) -> bool {
        let before = match row {
            SECOND => self.holds(s, FIRST) || self.holds(s, SUCCESSOR),
            _ => false,
        };
        self.rules.in_order && before
    }

    /// A write comes in: forwarded at once, or parked.
    pub(super) fn write(&self, s: &State, row: usize, edges: &mut Ways) {
        let waits = self.waits(s);
        let own = s.seen;
        let envelope = Row {
            status: Status::Queued,
            outcome: Outcome::NotSent,
            ending: None,
            on_disk: self.rules.write_ahead,
            live: false,
            lease: 0,
            born: s.tick,
            third_known: s.hub.third,
            own,
            chained: row == SECOND && waits,
            sent_with: None,
        };
        let mut n = *s;
        n.rows[row] = Some(envelope);
        edges.fault(Step::to("a write comes, the hub is away: parked", row), n);
        if waits && self.rules.in_order {
            return;
        }
        let condition = self.condition(s, &envelope);
        let inflight = Row {
            status: Status::Inflight,
            outcome: Outcome::Unknown,
            live: true,
            lease: 1,
            sent_with: Some(condition),
            ..envelope
        };
        let on_live = if self.rules.precondition_on_live { condition } else { None };
        n.rows[row] = Some(inflight);
        n.live[row] = Some(Copy { condition: on_live, lease: 1, sent: s.tick });
        edges.protocol(Step::to("a write comes, written ahead and forwarded", row), n);
    }

    /// What it is sent with for the first time.
    fn condition(&self, s: &State, envelope: &Row) -> Condition {
        if self.bounds.writes == Writes::Append {
            return None;
        }
        if !envelope.chained {
            return Some(envelope.own);
        }
        let before = if s.rows[SUCCESSOR].is_some() { SUCCESSOR } else { FIRST };
        let predecessor = s.rows[before].map(|row| {
            (row.status, row.outcome, (row.status == Status::Done).then(|| s.hub.made[before].to_string()))
        });
        let own = Precondition::Match(envelope.own.to_string());
        match relay::effective(own.clone(), predecessor) {
            Precondition::Match(_) if predecessor_lost(s, before) && !self.rules.chain_falls_back => None,
            Precondition::Match(tag) => tag.parse().ok(),
            Precondition::UnmodifiedSince(_) => None,
        }
    }

    pub(super) fn relay_steps(&self, s: &State, row: usize, edges: &mut Ways) {
        let Some(envelope) = s.rows[row] else { return };
        match (envelope.status, envelope.ending) {
            (Status::Queued, Some(ending)) => self.ask(s, row, ending, edges),
            (Status::Queued, None) if !self.is_blocked(s, row) => self.claim(s, row, edges),
            (Status::Inflight, _) => {
                let mut n = *s;
                self.settle(&mut n, row, true, Answer::Lost);
                edges.protocol(Step::to("no answer in time: parked as unknown", row), n);
            }
            (Status::Queued, None)
            | (
                Status::Done
                | Status::Conflict
                | Status::Rejected
                | Status::Expired
                | Status::Cancelled
                | Status::Superseded,
                _,
            ) => {}
        }
        self.hear(s, row, edges);
        if !envelope.on_disk {
            let mut n = *s;
            n.rows[row] = Some(Row { on_disk: true, ..envelope });
            edges.protocol(Step::to("it reaches the disk", row), n);
        }
        // Another replayer of the same file held an earlier lease and has slept.
        if envelope.lease > 1 || (envelope.lease == 1 && envelope.status == Status::Cancelled) {
            let mut n = *s;
            self.settle(&mut n, row, false, Answer::Lost);
            if n != *s {
                edges.fault(Step::to("a stale replayer's time is over", row), n);
            }
        }
    }

    fn hear(&self, s: &State, row: usize, edges: &mut Ways) {
        let (Some(reply), Some(envelope)) = (s.replies[row], s.rows[row]) else { return };
        let mut n = *s;
        n.replies[row] = None;
        let current = reply.lease == envelope.lease || !self.rules.leases;
        let answer = match reply.says {
            Says::Committed { version } => {
                n.seen = n.seen.max(version);
                Answer::Committed
            }
            Says::Conflict => Answer::Conflict,
            Says::Refused => Answer::Refused,
        };
        self.settle(&mut n, row, current, answer);
        edges.protocol(Step::to("the relay hears an answer", row), n);
    }

    fn settle(&self, n: &mut State, row: usize, current: bool, answer: Answer) {
        let Some(envelope) = &mut n.rows[row] else { return };
        match (self.rules.settle)(envelope.status, current, envelope.outcome, answer) {
            Move::Done => {
                envelope.status = Status::Done;
                envelope.outcome = Outcome::Committed;
                envelope.ending = None;
            }
            Move::LateAck => envelope.outcome = Outcome::Committed,
            Move::Again(outcome) => {
                envelope.status = Status::Queued;
                envelope.outcome = outcome;
                envelope.live = false;
            }
            Move::Ask(ending) => {
                envelope.status = Status::Queued;
                envelope.outcome = Outcome::Unknown;
                envelope.ending = Some(ending);
                envelope.live = false;
            }
            Move::Expire | Move::Pause | Move::Nothing => {}
        }
    }

    /// Takes the envelope and sends it; one that is too old ends instead, after the hub was asked.
    fn claim(&self, s: &State, row: usize, edges: &mut Ways) {
        let Some(mut envelope) = s.rows[row] else { return };
        let mut n = *s;
        if self.rules.age_rule && relay::age(State::instant(envelope.born), s.now()) == Age::Over {
            match envelope.outcome {
                Outcome::NotSent => envelope.status = Status::Expired,
                Outcome::Unknown | Outcome::Committed | Outcome::NotCommitted => {
                    envelope.ending = Some(Ending::Expired);
                }
            }
            n.rows[row] = Some(envelope);
            return edges.protocol(Step::to("too old to be replayed", row), n);
        }
        if s.replay[row].is_some() {
            return;
        }
        n.grow_old(row);
        let condition = envelope.sent_with.unwrap_or_else(|| self.condition(s, &envelope));
        envelope.status = Status::Inflight;
        envelope.outcome = Outcome::Unknown;
        envelope.lease = (envelope.lease + 1).min(NEWEST);
        envelope.sent_with = Some(condition);
        n.replay[row] = Some(Copy { condition, lease: envelope.lease, sent: s.tick });
        n.rows[row] = Some(envelope);
        edges.protocol(Step::to("the relay replays it", row), n);
    }

    /// Asks the hub about the key of an envelope that is to end.
    fn ask(&self, s: &State, row: usize, ending: Ending, edges: &mut Ways) {
        let mut n = *s;
        let fenced = self.fenced(&mut n, row);
        if n != *s {
            edges.fault(Step::to("the hub is asked about the key, its answer is LOST", row), n);
        }
        let (status, outcome) = (self.rules.conclude)(ending, fenced);
        if let Some(envelope) = &mut n.rows[row] {
            envelope.status = status;
            envelope.outcome = outcome;
            envelope.ending = None;
        }
        n.withdrawn |= row == FIRST && status == Status::Cancelled;
        edges.protocol(Step::to("the hub is asked about the key: it ends", row), n);
    }

    /// The process dies: what was on the wire is parked, answers are lost, and so is what the disk does not have.
    pub(super) fn crash(&self, s: &State, edges: &mut Ways) {
        let matters = |row: &Row| row.status == Status::Inflight || !row.on_disk;
        if s.left.crashes == 0 || !s.rows.iter().flatten().any(matters) {
            return;
        }
        let mut n = *s;
        n.left.crashes -= 1;
        n.replies = [None; 3];
        for gone in n.rows.iter_mut().filter(|row| row.is_some_and(|row| !row.on_disk)) {
            // A caller that still waits sees its connection break; any other was given a receipt.
            n.wrong.lost |= gone.take().is_some_and(|row| !row.live);
        }
        for row in n.rows.iter_mut().flatten().filter(|row| row.status == Status::Inflight) {
            row.status = Status::Queued;
            row.outcome = Outcome::Unknown;
            row.live = false;
        }
        edges.fault(Step::of("the relay CRASHES and starts again"), n);
    }
}

impl State {
    /// What is under way for an envelope belongs to an older attempt from now on.
    fn grow_old(&mut self, row: usize) {
        let older = |lease: &mut u8| *lease = (*lease).min(NEWEST - 1);
        self.live[row].iter_mut().for_each(|copy| older(&mut copy.lease));
        self.replies[row].iter_mut().for_each(|reply| older(&mut reply.lease));
    }
}

/// Whether the one before it ended without having been committed.
fn predecessor_lost(s: &State, before: usize) -> bool {
    s.rows[before].is_some_and(|row| row.status != Status::Done)
}
