//! What lives of the agent do, and what happens to them.

use model::turn::{Asking, EndVerdict, TurnMark};

use super::Turns;
use super::state::{LIVES, MESSAGES, State, Work};
use crate::explore::{Edges, Step};

type Ways = Edges<State>;

impl Turns {
    pub(super) fn begin_steps(&self, s: &State, edges: &mut Ways) {
        for life in (0..LIVES).filter(|life| s.hands[*life].is_none()) {
            // One idle life is like the other.
            if s.hands[..life].iter().any(Option::is_none) {
                continue;
            }
            let Some(freed) = self.without_lost(s) else { continue };
            if freed != *s && (0..MESSAGES).all(|message| !self.is_next(&freed, message)) {
                edges.protocol(Step::of("asks for a turn, finds a lost one and nothing to begin"), freed);
            }
            for message in 0..MESSAGES {
                if self.is_next(&freed, message) {
                    self.begin(&freed, life, message, Asking::Next, edges);
                }
                if freed.messages[message].mark == TurnMark::GivenUp && s.left.names > 0 {
                    let mut named = freed;
                    named.left.names -= 1;
                    self.begin(&named, life, message, Asking::ByName, edges);
                }
            }
        }
    }

    /// The state a begin finds: an open turn past its lease is interrupted by it, one within refuses it.
    fn without_lost(&self, s: &State) -> Option<State> {
        let Some(open) = s.open() else { return Some(*s) };
        let turn = s.messages[open].turn(s.messages[open].attempts);
        (self.rules.is_lost)(&turn, s.now()).then(|| {
            let taken = s.taken || (s.is_held(open) && !s.late);
            State { taken, ..self.interrupt(s, open) }
        })
    }

    fn interrupt(&self, s: &State, message: usize) -> State {
        let mut n = *s;
        let row = &mut n.messages[message];
        if self.rules.interruption_recorded {
            row.interrupted |= 1 << row.attempts;
        }
        row.mark = (self.rules.interrupted)(row.attempts.into());
        n.late = false;
        n
    }

    fn is_next(&self, s: &State, message: usize) -> bool {
        let waits =
            |place: usize| matches!(s.messages[place].mark, TurnMark::Waiting | TurnMark::Interrupted);
        waits(message) && (!self.rules.in_order || (0..message).all(|earlier| !waits(earlier)))
    }

    fn begin(&self, s: &State, life: usize, message: usize, asking: Asking, edges: &mut Ways) {
        let row = s.messages[message];
        let Ok(beginning) = (self.rules.begin)(row.mark, row.attempts.into(), asking) else { return };
        let attempt = row.attempts + 1;
        let mut n = *s;
        let waits =
            |place: &usize| matches!(s.messages[*place].mark, TurnMark::Waiting | TurnMark::Interrupted);
        n.overtaken |= asking == Asking::Next && (0..message).any(|earlier| waits(&earlier));
        let told = &mut n.messages[message];
        told.unasked += u8::from(asking == Asking::Next);
        told.unmarked += u8::from(!beginning.redelivered);
        told.rushed |= row.attempts > 0 && row.interrupted & (1 << row.attempts) == 0;
        let work = Work {
            message: u8::try_from(message).expect("two messages"),
            attempt,
            asked_end: false,
            reply_due: false,
        };
        n.hands[life] = Some(work);
        if !self.rules.recorded_first && s.left.deaths > 0 {
            // Told, and the daemon died before the commit; the life went with it.
            let mut unrecorded = n;
            unrecorded.hands[life] = None;
            unrecorded.left.deaths -= 1;
            edges.fault(Step::to("told of a turn that was never recorded, and died", message), unrecorded);
        }
        n.messages[message].attempts = attempt;
        n.messages[message].mark = TurnMark::Open;
        n.late = false;
        let words = if beginning.redelivered { "begins a turn, marked" } else { "begins a turn" };
        edges.protocol(Step::to(words, message), n);
        if s.left.lost_answers > 0 {
            // Nobody was told, so nobody saw the attempt.
            let mut lost = n;
            lost.hands[life] = None;
            lost.left.lost_answers -= 1;
            lost.messages[message].unmarked = row.unmarked;
            lost.messages[message].rushed = row.rushed;
            edges.fault(Step::to("begins a turn, the answer is lost and the life with it", message), lost);
        }
    }

    pub(super) fn end_steps(&self, s: &State, edges: &mut Ways) {
        for (life, work) in s.hands.iter().enumerate().filter_map(|(life, work)| Some((life, (*work)?))) {
            let message = usize::from(work.message);
            if work.reply_due {
                let mut n = *s;
                n.messages[message].replies += 1;
                n.hands[life] = None;
                edges.protocol(Step::to("commits the reply", message), n);
                continue;
            }
            let row = s.messages[message];
            let newest = row.attempts == work.attempt;
            let verdict = (self.rules.end)(&row.turn(work.attempt), work.asked_end, newest);
            let mut n = *s;
            n.hands[life] = None;
            match verdict {
                EndVerdict::Replay | EndVerdict::Lost | EndVerdict::Over => {
                    edges.protocol(Step::to("asks for an end and gets none of its own", message), n);
                }
                EndVerdict::End => self.end(s, life, message, work, edges),
            }
        }
    }

    fn end(&self, s: &State, life: usize, message: usize, work: Work, edges: &mut Ways) {
        let mut n = *s;
        let row = &mut n.messages[message];
        row.mark = TurnMark::Over;
        row.ended = Some(work.attempt);
        n.late = false;
        if self.rules.reply_with_end {
            n.messages[message].replies += 1;
            n.hands[life] = None;
        } else {
            n.hands[life] = Some(Work { reply_due: true, ..work });
        }
        edges.protocol(Step::to("ends the turn", message), n);
        if s.left.lost_answers > 0 && self.rules.reply_with_end {
            n.left.lost_answers -= 1;
            n.hands[life] = Some(Work { asked_end: true, ..work });
            edges.fault(Step::to("ends the turn, the answer is lost", message), n);
        }
    }

    pub(super) fn life_steps(&self, s: &State, edges: &mut Ways) {
        for life in (0..LIVES).filter(|life| s.hands[*life].is_some() && s.left.deaths > 0) {
            let mut n = *s;
            n.hands[life] = None;
            n.left.deaths -= 1;
            edges.fault(Step::of("a life ends"), n);
        }
        let Some(open) = s.open() else { return };
        if s.late {
            return;
        }
        let n = State { late: true, ..*s };
        if !s.is_held(open) {
            if self.rules.leases_end {
                edges.protocol(Step::to("the lease of a dead life runs out", open), n);
            }
        } else if s.left.late > 0 {
            let mut n = n;
            n.left.late -= 1;
            edges.fault(Step::to("the lease runs out, its holder unaware", open), n);
        }
    }
}
