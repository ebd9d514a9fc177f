//! Rules taken out, one at a time, each in a world in which it shows.

use super::check::{
    ACCEPTED_TWICE, DONE_UNACCEPTED, ID_FREED, LATE, NO_FOR_A_YES, OUTCOME_LIES, SWALLOWED, TWO_IDS,
    TWO_UNITS, WRONG_WORDS,
};
use super::rules::{Clock, Habits, Rules};
use super::{Bounds, Outbox, Second, variants};
use crate::explore::{NO_END, Run, Scope};

const REAL: Rules = Rules::REAL;
const KEPT: Habits = Habits::KEPT;

/// A planted fault is found long before this.
const STATES_MAX: usize = 5_000_000;

/// The worlds with a planted fault each. Those that need more than a week and much else take too long for an
/// ordinary test.
pub fn plants(scope: Scope) -> Vec<Run> {
    let mut plants = door();
    plants.extend(broker());
    plants.extend(daemon());
    plants.extend(operator());
    plants.extend(made_up_for());
    match scope {
        Scope::Small => {}
        Scope::Full { .. } => plants.extend(weeks()),
    }
    plants
}

/// Nobody operates.
const fn alone(days: u8) -> Bounds {
    Bounds { operations: 0, ..Bounds::usual(days) }
}

/// Nobody operates, and only what gets lost gets lost.
const fn quiet(days: u8) -> Bounds {
    Bounds { operations: 0, ..operated(days) }
}

/// Only what an operator does, and answers that get lost.
const fn operated(days: u8) -> Bounds {
    Bounds { crashes: 0, broker_crashes: 0, doubled: 0, vanishings: 0, ..Bounds::usual(days) }
}

fn found(name: &'static str, found_as: &'static str, bounds: Bounds, rules: Rules) -> Run {
    Run::breaks(name, found_as, Outbox { bounds, rules }, STATES_MAX)
}

const fn with(habits: Habits) -> Rules {
    Rules { habits, ..REAL }
}

fn door() -> Vec<Run> {
    vec![
        found(
            "an aborted row's id is free again",
            ID_FREED,
            operated(0),
            Rules { decide: variants::decide_frees_aborted, ..REAL },
        ),
        found(
            "the door looks at the id alone",
            WRONG_WORDS,
            alone(0),
            Rules { decide: variants::decide_by_id, ..REAL },
        ),
    ]
}

fn broker() -> Vec<Run> {
    let wiped = Bounds { wipes: 1, ..alone(0) };
    let late = Bounds { deliver_by: Some(3), ..alone(3) };
    vec![
        found(
            "the dedupe key does not name the sender",
            SWALLOWED,
            Bounds { guest: true, ..alone(0) },
            with(Habits { key_names_sender: false, ..KEPT }),
        ),
        found(
            "the dedupe row is written after the accept transaction",
            ACCEPTED_TWICE,
            alone(0),
            with(Habits { dedupe_in_transaction: false, ..KEPT }),
        ),
        found(
            "429 is permanent, and the look-up reads a lagging replica",
            NO_FOR_A_YES,
            Bounds { limiter: true, ..alone(3) },
            Rules {
                settle: variants::settle_buries_rate_limited,
                habits: Habits { look_up_is_fresh: false, ..KEPT },
                ..REAL
            },
        ),
        found(
            "the limiter charges every attempt",
            TWO_UNITS,
            alone(0),
            with(Habits { charges_once: false, ..KEPT }),
        ),
        found(
            "the broker does not compare fingerprints",
            DONE_UNACCEPTED,
            wiped,
            Rules { look_up: variants::look_up_by_id, ..REAL },
        ),
        found(
            "R5: the broker does not look at send_deadline",
            ACCEPTED_TWICE,
            Bounds { doubled: 1, ..quiet(9) },
            Rules { check_time: variants::check_time_without_send_deadline, ..REAL },
        ),
        found(
            "the broker does not look at deliver_by",
            LATE,
            late,
            Rules { check_time: variants::check_time_without_deliver_by, ..REAL },
        ),
        found(
            "the broker accepts a retired id",
            OUTCOME_LIES,
            alone(0),
            Rules { look_up: variants::look_up_forgets_retired, ..REAL },
        ),
    ]
}

const RESTORED: Bounds = Bounds { restores: 1, second: Second::Send, ..quiet(3) };

fn weeks() -> Vec<Run> {
    vec![
        found(
            "R2: a retired id counts as proof that nothing was accepted",
            OUTCOME_LIES,
            Bounds { wipes: 1, doubled: 1, vanishings: 1, ..quiet(9) },
            Rules { settle: variants::settle_believes_retired, ..REAL },
        ),
        found(
            "R9: a row driven again counts its age from now",
            ACCEPTED_TWICE,
            Bounds { days: 8, stride: 2, ..RESTORED },
            Rules { redrive: variants::redrive_as_new, ..REAL },
        ),
    ]
}

fn daemon() -> Vec<Run> {
    vec![
        found(
            "R2: a refusal counts as proof that nothing was accepted",
            OUTCOME_LIES,
            alone(6),
            Rules { settle: variants::settle_believes_refusals, ..REAL },
        ),
        found(
            "R2: a row given up for its age counts as never sent",
            OUTCOME_LIES,
            alone(6),
            Rules { claim: variants::claim_forgets_attempts, ..REAL },
        ),
        found(
            "R3: nobody asks about rows that ended unknown",
            NO_END,
            quiet(6),
            with(Habits { asks_about_ended: false, ..KEPT }),
        ),
        found(
            "R4: first_attempt_at is written after the send",
            ACCEPTED_TWICE,
            Bounds { crashes: 1, ..quiet(9) },
            with(Habits { first_attempt_before_sending: false, ..KEPT }),
        ),
        found(
            "R4: ages are counted by the daemon's own clock",
            ACCEPTED_TWICE,
            Bounds { crashes: 1, doubled: 1, ..quiet(9) },
            with(Habits { clock: Clock::Own, ..KEPT }),
        ),
        found(
            "R6: an answer is matched by client_message_id alone",
            DONE_UNACCEPTED,
            Bounds { wipes: 1, ..alone(0) },
            with(Habits { answers_name_words: false, ..KEPT }),
        ),
        found(
            "rows on the wire are not recovered at start",
            NO_END,
            Bounds { crashes: 1, ..quiet(3) },
            with(Habits { recovers: false, ..KEPT }),
        ),
        found(
            "R9: a restored broker is not noticed",
            NO_END,
            Bounds { days: 0, ..RESTORED },
            with(Habits { redrives: false, ..KEPT }),
        ),
    ]
}

fn operator() -> Vec<Run> {
    vec![
        found(
            "requeue asks nobody",
            TWO_IDS,
            operated(0),
            Rules {
                asking: variants::asking_nobody,
                requeue: variants::requeue_asking_nobody,
                waits_for: variants::waits_for_nobody,
                ..REAL
            },
        ),
        found(
            "a row on the wire may be requeued, and nothing is fenced",
            TWO_IDS,
            operated(0),
            Rules {
                asking: variants::asking_on_the_wire,
                requeue: variants::requeue_on_the_wire,
                fence: variants::fence_nothing,
                ..REAL
            },
        ),
        found(
            "R1: message_status does not fence",
            TWO_IDS,
            operated(0),
            Rules { fence: variants::fence_nothing, ..REAL },
        ),
        found(
            "R1: a fence does not keep an id that other words hold",
            OUTCOME_LIES,
            Bounds { wipes: 1, doubled: 1, ..quiet(9) },
            Rules { fence: variants::fence_absent_only, ..REAL },
        ),
        found(
            "R1: message_status does not compare fingerprints",
            DONE_UNACCEPTED,
            Bounds { wipes: 1, ..operated(0) },
            Rules { message_status: variants::status_by_id, ..REAL },
        ),
        found(
            "R1: what the broker forgot is answered as absent",
            OUTCOME_LIES,
            operated(9),
            Rules { message_status: variants::status_without_window, ..REAL },
        ),
        found(
            "R1: a requeue needs no force although the window has passed",
            TWO_IDS,
            operated(9),
            Rules { requeue: variants::requeue_without_force, ..REAL },
        ),
        found(
            "R1: a broker that does not answer counts as absent",
            TWO_IDS,
            operated(0),
            Rules { requeue: variants::requeue_on_silence, ..REAL },
        ),
        found(
            "R2: an aborted row counts as never sent",
            OUTCOME_LIES,
            operated(0),
            Rules { abort: variants::abort_forgets_attempts, ..REAL },
        ),
        found(
            "a forced successor leaves before the broker was asked",
            TWO_IDS,
            operated(0),
            Rules { waits_for: variants::waits_for_nobody, ..REAL },
        ),
        found(
            "a late acceptance does not retire the successor",
            TWO_IDS,
            operated(0),
            Rules { retires_successor: variants::retires_nobody, ..REAL },
        ),
    ]
}

/// Planted, and nothing breaks: other rules make up for it. Kept for what these worlds do not measure.
fn made_up_for() -> Vec<Run> {
    let silent = |name, bounds, rules| Run::made_up_for(name, Outbox { bounds, rules }, STATES_MAX);
    vec![
        silent(
            "a requeue does not notice that its hold was broken",
            operated(3),
            with(Habits { hold_is_checked: false, ..KEPT }),
        ),
        silent(
            "a refusal is recorded without the lease",
            alone(3),
            Rules { settle: variants::settle_without_lease, ..REAL },
        ),
    ]
}
