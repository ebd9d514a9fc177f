//! The worlds that must hold, and rules taken out one at a time.

use model::hub;
use model::relay::{self, Answer, Move, Outcome, Retry, Status};

use super::check::{
    CAME_BACK, ENDED_BUT_APPLIED, OVERTAKEN, OVERWRITTEN, PASSED_BY, PASSING_OVERWROTE, TWICE,
};
use super::{Bounds, Envelope, Net, Rules, Writes};
use crate::explore::{Run, Scope};

const STATES_MAX: usize = 20_000_000;
const REAL: Rules = Rules::REAL;

/// Two writes that change something, a process that dies, somebody else.
const REPLACE: Bounds = Bounds {
    writes: Writes::Replace,
    ticks: 3,
    crashes: 1,
    third_party: 1,
    refusals: 0,
    operator: false,
    passing: false,
    net: Net::Bounded,
};

const APPEND: Bounds = Bounds { writes: Writes::Append, third_party: 0, ..REPLACE };

/// Small worlds are those of an ordinary test: nothing dies, time stops when envelopes expire.
fn sized(bounds: Bounds, scope: Scope) -> Bounds {
    match scope {
        Scope::Small => Bounds { crashes: 0, ticks: bounds.ticks.min(2), ..bounds },
        Scope::Full { .. } => bounds,
    }
}

/// The worlds with nothing planted.
pub fn runs(scope: Scope) -> Vec<Run> {
    let holds =
        |name, bounds| Run::holds(name, Envelope { bounds: sized(bounds, scope), rules: REAL }, STATES_MAX);
    let mut runs = vec![
        holds("envelope: changes, somebody else writes", REPLACE),
        holds("envelope: additions, the hub refuses for a while", Bounds { refusals: 2, ..APPEND }),
        holds("envelope: additions, an operator", Bounds { operator: true, ticks: 4, ..APPEND }),
        holds("envelope: a write that cannot be parked", Bounds { passing: true, third_party: 0, ..REPLACE }),
    ];
    if scope != Scope::Small {
        runs.push(holds("envelope: changes, an operator", Bounds { operator: true, ..REPLACE }));
        runs.push(holds("envelope: changes, the hub refuses for a while", Bounds { refusals: 2, ..REPLACE }));
        let endless = Bounds { operator: true, ticks: 4, crashes: 0, net: Net::Endless, ..APPEND };
        runs.push(holds("envelope: additions, an operator, copies under way for ever", endless));
    }
    runs
}

/// The worlds with a planted fault each.
pub fn plants(_: Scope) -> Vec<Run> {
    let found = |name, found_as, bounds: Bounds, rules| {
        Run::breaks(name, found_as, Envelope { bounds, rules }, STATES_MAX)
    };
    let made_up_for =
        |name, bounds: Bounds, rules| Run::made_up_for(name, Envelope { bounds, rules }, STATES_MAX);
    let quiet = Bounds { crashes: 0, ticks: 2, ..REPLACE };
    let adding = Bounds { crashes: 0, ticks: 2, ..APPEND };
    let refusing = Bounds { refusals: 2, ..adding };
    let operated = Bounds { operator: true, ..adding };
    let endless = Bounds { net: Net::Endless, ticks: 4, ..adding };
    let passing = Bounds { passing: true, third_party: 0, ..quiet };
    let unfenced = Rules { fence: false, ..REAL };
    vec![
        found(
            "the hub records a key in a transaction of its own",
            TWICE,
            adding,
            Rules { key_with_effect: false, ..REAL },
        ),
        found(
            "R17: the first live attempt carries no precondition",
            OVERWRITTEN,
            quiet,
            Rules { precondition_on_live: false, ..REAL },
        ),
        found(
            "R17: a chain whose predecessor did not commit has no precondition",
            OVERWRITTEN,
            Bounds { operator: true, ..quiet },
            Rules { chain_falls_back: false, ..REAL },
        ),
        found("R18: a refused envelope ends without a fence", ENDED_BUT_APPLIED, refusing, unfenced),
        found("R18: a cancelled envelope ends without a fence", OVERTAKEN, operated, unfenced),
        found(
            "R18: an envelope that waits for the hub's word does not hold its resource",
            OVERTAKEN,
            refusing,
            Rules { asking_holds: false, ..REAL },
        ),
        found(
            "R18, R19: no key is asked about, and a successor is made all the same",
            TWICE,
            Bounds { ticks: 2, ..operated },
            Rules {
                retry: succeeds_always,
                conclude: never_unknown,
                fence: false,
                key_status: never_committed,
                ..REAL
            },
        ),
        found(
            "R19: neither relay nor hub looks at a copy's age",
            TWICE,
            endless,
            Rules { age_rule: false, is_too_old: never_too_old, ..REAL },
        ),
        found(
            "R20: a write that cannot be parked passes by",
            PASSED_BY,
            passing,
            Rules { passing_waits: false, passing_precondition: false, ..REAL },
        ),
        found(
            "R20: a write that cannot be parked carries no precondition",
            PASSING_OVERWROTE,
            passing,
            Rules { passing_precondition: false, ..REAL },
        ),
        found(
            "R18, R21: no fence, and a stale replayer puts a withdrawn envelope back",
            CAME_BACK,
            operated,
            Rules { settle: stale_counts, fence: false, ..REAL },
        ),
        found("additions do not wait for each other", OVERTAKEN, adding, Rules { in_order: false, ..REAL }),
        made_up_for("changes do not wait behind a conflict", quiet, Rules { conflict_holds: false, ..REAL }),
        made_up_for("an answer counts for any attempt", refusing, Rules { leases: false, ..REAL }),
        made_up_for("only the hub looks at a copy's age", endless, Rules { age_rule: false, ..REAL }),
    ]
}

fn never_too_old(_: Option<model::Timestamp>, _: model::Timestamp) -> bool {
    false
}

fn succeeds_always(status: Status, outcome: Outcome, over: bool) -> Retry {
    match relay::retry(status, outcome, over) {
        Retry::AskFirst => Retry::Successor,
        other => other,
    }
}

fn never_unknown(ending: relay::Ending, _: relay::Fenced) -> (Status, Outcome) {
    (ending.status(), Outcome::Unknown)
}

fn never_committed(
    _: Option<&hub::KnownKey>,
    _: Option<model::Timestamp>,
    _: model::Timestamp,
) -> hub::KeyAnswer {
    hub::KeyAnswer::Absent
}

fn stale_counts(status: Status, current: bool, outcome: Outcome, answer: Answer) -> Move {
    match (status, answer) {
        (Status::Cancelled, Answer::Lost) => Move::Again(Outcome::Unknown),
        (_, _) => relay::settle(status, current, outcome, answer),
    }
}
