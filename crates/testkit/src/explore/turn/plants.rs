//! The worlds that must hold, and rules taken out one at a time.

use model::Timestamp;
use model::turn::{self, Asking, Beginning, EndVerdict, NoTurn, TurnMark, TurnState};

use super::check::{OVERTAKEN, RUSHED, TAKEN, TOO_OFTEN, TWO_FIRSTS, TWO_REPLIES, WITHOUT_REPLY};
use super::{Bounds, Rules, Turns};
use crate::explore::{NO_END, Run, Scope};

const STATES_MAX: usize = 5_000_000;
const REAL: Rules = Rules::REAL;

const fn usual(scope: Scope) -> Bounds {
    match scope {
        Scope::Small => Bounds { deaths: 2, lost_answers: 1, late: 1, names: 1 },
        Scope::Full { .. } => Bounds { deaths: 5, lost_answers: 4, late: 4, names: 3 },
    }
}

/// The worlds with nothing planted.
pub fn runs(scope: Scope) -> Vec<Run> {
    let usual = usual(scope);
    let holds = |name, bounds| Run::holds(name, Turns { bounds, rules: REAL }, STATES_MAX);
    vec![
        holds("turn: lives end, answers are lost, leases run out", usual),
        holds("turn: nobody names what was given up", Bounds { names: 0, ..usual }),
    ]
}

/// The worlds with a planted fault each.
pub fn plants(scope: Scope) -> Vec<Run> {
    let bounds = usual(scope);
    let found = |name, found_as, rules| Run::breaks(name, found_as, Turns { bounds, rules }, STATES_MAX);
    vec![
        found("turn: attempts are not counted", TWO_FIRSTS, Rules { begin: uncounted, ..REAL }),
        found(
            "turn: the answer comes before the record",
            TWO_FIRSTS,
            Rules { recorded_first: false, ..REAL },
        ),
        found("turn: a lease is not looked at", TAKEN, Rules { is_lost: always, ..REAL }),
        found(
            "turn: an interruption leaves no trace",
            RUSHED,
            Rules { interruption_recorded: false, ..REAL },
        ),
        found("turn: a lost turn may still end", TWO_REPLIES, Rules { end: ends_when_lost, ..REAL }),
        found("turn: an end asked again ends again", TWO_REPLIES, Rules { end: ends_twice, ..REAL }),
        found(
            "turn: the reply is committed after the end",
            WITHOUT_REPLY,
            Rules { reply_with_end: false, ..REAL },
        ),
        found(
            "turn: an interrupted message counts as over",
            WITHOUT_REPLY,
            Rules { interrupted: over, ..REAL },
        ),
        found(
            "turn: an interrupted message is never given up",
            TOO_OFTEN,
            Rules { interrupted: again, ..REAL },
        ),
        found(
            "turn: the most urgent message overtakes its own conversation",
            OVERTAKEN,
            Rules { in_order: false, ..REAL },
        ),
        found("turn: leases never run out", NO_END, Rules { leases_end: false, ..REAL }),
    ]
}

fn uncounted(mark: TurnMark, _attempts: u32, asking: Asking) -> Result<Beginning, NoTurn> {
    turn::begin(mark, 0, asking)
}

fn always(_state: &TurnState, _now: Timestamp) -> bool {
    true
}

fn ends_when_lost(state: &TurnState, same: bool, _newest: bool) -> EndVerdict {
    turn::end(state, same, true)
}

fn ends_twice(state: &TurnState, same: bool, newest: bool) -> EndVerdict {
    match turn::end(state, same, newest) {
        EndVerdict::Replay => EndVerdict::End,
        verdict @ (EndVerdict::End | EndVerdict::Lost | EndVerdict::Over) => verdict,
    }
}

fn over(_attempt: u32) -> TurnMark {
    TurnMark::Over
}

fn again(_attempt: u32) -> TurnMark {
    TurnMark::Interrupted
}
