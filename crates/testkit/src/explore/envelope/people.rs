//! Callers, an operator, a third party, time.

use model::relay::{self, Age, Cancel, Ending, Fenced, Outcome, Retry, Status};

use super::state::{FIRST, Passing, Row, SECOND, SUCCESSOR, State, Writer};
use super::{Envelope, Net, Writes};
use crate::explore::{Edges, Step};

type Ways = Edges<State>;

impl Envelope {
    pub(super) fn caller_steps(&self, s: &State, edges: &mut Ways) {
        match (s.rows[FIRST], s.rows[SECOND]) {
            (None, _) => {
                if s.seen != s.hub.version {
                    let n = State { seen: s.hub.version, ..*s };
                    edges.protocol(Step::of("the caller reads the resource through the relay"), n);
                }
                self.write(s, FIRST, edges);
            }
            // The caller goes on once it has an answer: the live one, or that the write is parked.
            (Some(first), None) if !(first.status == Status::Inflight && first.live) => {
                self.write(s, SECOND, edges);
            }
            (Some(_), _) => {}
        }
    }

    /// A write that cannot be parked: a deletion, a body too large, one with a secret.
    pub(super) fn passing_steps(&self, s: &State, edges: &mut Ways) {
        match s.passing {
            Passing::NotCome if s.rows[FIRST].is_some() => {
                let waits = self.waits(s);
                if waits && self.rules.passing_waits {
                    let n = State { passing: Passing::Over, ..*s };
                    return edges.fault(Step::of("a passing write is refused: others wait"), n);
                }
                let condition = self.rules.passing_precondition.then_some(s.seen);
                let later_applied = false;
                let passing =
                    Passing::UnderWay { condition, over_waiting: waits, later_applied, sent: s.tick };
                edges.fault(Step::of("a passing write is forwarded"), State { passing, ..*s });
            }
            Passing::UnderWay { .. } => self.passing_arrives(s, edges),
            Passing::NotCome | Passing::Over => {}
        }
    }

    pub(super) fn operator_steps(&self, s: &State, edges: &mut Ways) {
        let Some(first) = s.rows[FIRST].filter(|_| s.left.operator) else { return };
        let mut n = *s;
        n.left.operator = false;
        self.cancel(n, first, edges);
        let over = relay::age(State::instant(first.born), s.now()) == Age::Over;
        match (self.rules.retry)(first.status, first.outcome, over) {
            Retry::Successor => self.succeed(n, edges),
            Retry::AskFirst => match self.fenced(&mut n, FIRST) {
                Fenced::Committed => {
                    n.rows[FIRST] = Some(Row {
                        status: Status::Done,
                        outcome: Outcome::Committed,
                        ending: None,
                        ..first
                    });
                    edges.fault(Step::of("the operator retries: it was committed"), n);
                }
                Fenced::Retired | Fenced::AnotherRequest => {
                    n.rows[FIRST] = Some(Row { outcome: Outcome::NotCommitted, ..first });
                    self.succeed(n, edges);
                }
                Fenced::Unknown => {
                    n.forced = true;
                    self.succeed(n, edges);
                }
            },
            Retry::Now | Retry::Wait | Retry::Over => {}
        }
    }

    fn cancel(&self, mut n: State, first: Row, edges: &mut Ways) {
        let row = match relay::cancel(first.status, first.outcome) {
            Cancel::Now => Row { status: Status::Cancelled, ending: None, ..first },
            Cancel::AskFirst => Row { ending: Some(Ending::Cancelled), ..first },
            Cancel::Wait | Cancel::Over => return,
        };
        n.withdrawn |= row.status == Status::Cancelled;
        n.rows[FIRST] = Some(row);
        edges.fault(Step::of("the operator cancels it"), n);
    }

    /// A new envelope under a new key, decided on what is there now.
    fn succeed(&self, mut n: State, edges: &mut Ways) {
        let Some(first) = n.rows[FIRST] else { return };
        n.rows[FIRST] = Some(Row { status: Status::Superseded, ending: None, ..first });
        n.rows[SUCCESSOR] = Some(Row {
            status: Status::Queued,
            outcome: Outcome::NotSent,
            ending: None,
            on_disk: self.rules.write_ahead,
            live: false,
            lease: 0,
            born: n.tick,
            third_known: n.hub.third,
            own: n.hub.version,
            chained: false,
            sent_with: None,
        });
        edges.fault(Step::of("the operator retries it under a new key"), n);
    }

    pub(super) fn fault_steps(&self, s: &State, edges: &mut Ways) {
        self.crash(s, edges);
        if s.tick < self.bounds.ticks && s.rows[FIRST].is_some() {
            let mut n = State { tick: s.tick + 1, ..*s };
            if self.bounds.net == Net::Bounded {
                n.live = [None; 3];
                n.replay = [None; 3];
                n.replies = [None; 3];
                if matches!(s.passing, Passing::UnderWay { .. }) {
                    n.passing = Passing::Over;
                }
            }
            edges.protocol(Step::of("six and a half days pass"), n);
        }
        if s.left.third_party > 0 && self.bounds.writes == Writes::Replace {
            let mut n = *s;
            n.left.third_party -= 1;
            n.hub.version += 1;
            n.hub.third += 1;
            n.hub.last = Writer::Third;
            edges.fault(Step::of("somebody else writes at the hub"), n);
        }
        if s.left.refusals > 0 {
            let mut n = *s;
            n.left.refusals -= 1;
            n.hub.refuses = !s.hub.refuses;
            let words = if n.hub.refuses { "the hub begins to refuse" } else { "the hub refuses no more" };
            edges.fault(Step::of(words), n);
        }
    }
}
