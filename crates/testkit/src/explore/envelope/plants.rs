//! The worlds that must hold, and rules taken out one at a time.

use model::hub;
use model::relay::{self, Answer, Move, Outcome, Retry, Status};

use super::check::{
    CAME_BACK, ENDED_BUT_APPLIED, LOST, OVERTAKEN, OVERWRITTEN, PASSED_BY, PASSING_OVERWROTE, TWICE,
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

const QUIET: Bounds = Bounds { crashes: 0, ticks: 2, ..REPLACE };
const ADDING: Bounds = Bounds { crashes: 0, ticks: 2, ..APPEND };
const DYING: Bounds = Bounds { crashes: 1, ..ADDING };
const REFUSING: Bounds = Bounds { refusals: 2, ..ADDING };
const OPERATED: Bounds = Bounds { operator: true, ..ADDING };
const ENDLESS: Bounds = Bounds { net: Net::Endless, ticks: 4, ..ADDING };
const PASSING: Bounds = Bounds { passing: true, third_party: 0, ..QUIET };
const UNFENCED: Rules = Rules { fence: false, ..REAL };

/// The worlds with a planted fault each.
pub fn plants(_: Scope) -> Vec<Run> {
    let mut runs = plants_of_keys();
    runs.extend(plants_of_order());
    let made_up_for =
        |name, bounds: Bounds, rules| Run::made_up_for(name, Envelope { bounds, rules }, STATES_MAX);
    runs.extend([
        made_up_for("changes do not wait behind a conflict", QUIET, Rules { conflict_holds: false, ..REAL }),
        made_up_for("an answer counts for any attempt", REFUSING, Rules { leases: false, ..REAL }),
        made_up_for("only the hub looks at a copy's age", ENDLESS, Rules { age_rule: false, ..REAL }),
    ]);
    runs
}

fn found(name: &'static str, found_as: &'static str, bounds: Bounds, rules: Rules) -> Run {
    Run::breaks(name, found_as, Envelope { bounds, rules }, STATES_MAX)
}

/// What a key is recorded for, asked about and remembered.
fn plants_of_keys() -> Vec<Run> {
    let own_transaction = Rules { key_with_effect: false, ..REAL };
    let never_asks =
        Rules { retry: succeeds_always, conclude: never_unknown, key_status: never_committed, ..UNFENCED };
    let ageless = Rules { age_rule: false, is_too_old: never_too_old, ..REAL };
    let stale = Rules { settle: stale_counts, ..UNFENCED };
    let receipt_first = Rules { write_ahead: false, ..REAL };
    vec![
        found("a receipt is given before its envelope is on the disk", LOST, DYING, receipt_first),
        found("the hub records a key in a transaction of its own", TWICE, ADDING, own_transaction),
        found("R18: a refused envelope ends without a fence", ENDED_BUT_APPLIED, REFUSING, UNFENCED),
        found("R18: a cancelled envelope ends without a fence", OVERTAKEN, OPERATED, UNFENCED),
        found(
            "R18, R19: no key is asked about, and a successor is made all the same",
            TWICE,
            OPERATED,
            never_asks,
        ),
        found("R19: neither relay nor hub looks at a copy's age", TWICE, ENDLESS, ageless),
        found(
            "R18, R21: no fence, and a stale replayer puts a withdrawn envelope back",
            CAME_BACK,
            OPERATED,
            stale,
        ),
    ]
}

/// What goes before what, and under which condition.
fn plants_of_order() -> Vec<Run> {
    let bare_live = Rules { precondition_on_live: false, ..REAL };
    let bare_chain = Rules { chain_falls_back: false, ..REAL };
    let lets_go = Rules { asking_holds: false, ..REAL };
    let bare_passing = Rules { passing_precondition: false, ..REAL };
    let passing_by = Rules { passing_waits: false, ..bare_passing };
    vec![
        found("R17: the first live attempt carries no precondition", OVERWRITTEN, QUIET, bare_live),
        found(
            "R17: a chain whose predecessor did not commit has no precondition",
            OVERWRITTEN,
            Bounds { operator: true, ..QUIET },
            bare_chain,
        ),
        found(
            "R18: an envelope that waits for the hub's word does not hold its resource",
            OVERTAKEN,
            REFUSING,
            lets_go,
        ),
        found("R20: a write that cannot be parked passes by", PASSED_BY, PASSING, passing_by),
        found(
            "R20: a write that cannot be parked carries no precondition",
            PASSING_OVERWROTE,
            PASSING,
            bare_passing,
        ),
        found("additions do not wait for each other", OVERTAKEN, ADDING, Rules { in_order: false, ..REAL }),
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
