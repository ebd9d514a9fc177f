//! The worlds that must hold, and rules taken out one at a time.

use model::DeliveryRung;
use model::receipt;

use super::check::{DELIVERED_ABSENT, FELL, WOKEN_TWICE};
use super::{Bounds, Delivery, Rules};
use crate::explore::{NO_END, Run, Scope};

const STATES_MAX: usize = 1_000_000;
const REAL: Rules = Rules::REAL;

const fn usual(scope: Scope) -> Bounds {
    let breaks = match scope {
        Scope::Small => 1,
        Scope::Full { .. } => 2,
    };
    Bounds { breaks, deadline: true, poison: false, resets: 0 }
}

/// The worlds with nothing planted.
pub fn runs(scope: Scope) -> Vec<Run> {
    let usual = usual(scope);
    let holds = |name, bounds| Run::holds(name, Delivery { bounds, rules: REAL }, STATES_MAX);
    vec![
        holds("delivery: links break, the deadline passes", usual),
        holds("delivery: the recipient's node cannot store it", Bounds { poison: true, ..usual }),
        holds("delivery: the inbox is lost", Bounds { resets: 1, poison: true, ..usual }),
    ]
}

/// The worlds with a planted fault each.
pub fn plants(scope: Scope) -> Vec<Run> {
    let usual = usual(scope);
    let found =
        |name, found_as, bounds, rules| Run::breaks(name, found_as, Delivery { bounds, rules }, STATES_MAX);
    let reset = Bounds { resets: 1, ..usual };
    vec![
        found("R7: an ack after the end is ignored", NO_END, usual, Rules { rise: ends_are_final, ..REAL }),
        found("R7: unconfirmed acks are not repeated", NO_END, usual, Rules { repeats_acks: false, ..REAL }),
        found(
            "the ack leaves before the inbox commits",
            DELIVERED_ABSENT,
            usual,
            Rules { ack_after_commit: false, ..REAL },
        ),
        found(
            "a pruned message leaves no id behind",
            WOKEN_TWICE,
            usual,
            Rules { keeps_tombstones: false, ..REAL },
        ),
        found(
            "R7: after a reset of the inbox nothing is marked redelivered",
            WOKEN_TWICE,
            reset,
            Rules { marks_redelivered: false, ..REAL },
        ),
        found("the last rung told is believed", FELL, usual, Rules { rise: last_is_believed, ..REAL }),
        found(
            "a receipt is acked before the sender's node recorded it",
            NO_END,
            usual,
            Rules { receipt_after_commit: false, ..REAL },
        ),
        Run::made_up_for(
            "a duplicate is not acked",
            Delivery { bounds: usual, rules: Rules { acks_duplicates: false, ..REAL } },
            STATES_MAX,
        ),
    ]
}

/// What ended at the broker stays ended.
fn ends_are_final(held: DeliveryRung, told: DeliveryRung) -> Option<DeliveryRung> {
    let ended = matches!(held, DeliveryRung::Expired | DeliveryRung::DeadLetter);
    receipt::rise(held, told).filter(|_| !ended)
}

/// Whatever comes last counts.
fn last_is_believed(held: DeliveryRung, told: DeliveryRung) -> Option<DeliveryRung> {
    (told != held).then_some(told)
}
