//! The worlds that must hold.

use super::{Bounds, Outbox, Rules, Second};
use crate::explore::{Run, Scope};

/// No world has more. A state with what is kept about it takes less than two hundred bytes, so this bounds memory too.
const STATES_MAX: usize = 30_000_000;

/// The worlds with nothing planted.
pub fn runs(scope: Scope) -> Vec<Run> {
    let worlds = match scope {
        Scope::Small => small(),
        Scope::Full { days } => full(days),
    };
    let run = |(name, bounds)| Run::holds(name, Outbox { bounds, rules: Rules::REAL }, STATES_MAX);
    worlds.into_iter().map(run).collect()
}

/// Some of each, short.
fn small() -> Vec<(&'static str, Bounds)> {
    let quiet = quiet(3);
    vec![
        ("outbox: crashes, doubled copies, a destination that vanishes", alone(3)),
        ("outbox: ten days, day by day", Bounds { days: 10, stride: 1, operations: 0, ..quiet }),
        ("outbox: an operator", quiet),
        ("outbox: an operator, and a copy twice", Bounds { doubled: 1, ..calm(3) }),
        ("outbox: an operator who forces other words", Bounds { patches: true, ..calm(3) }),
        ("outbox: messages with a deadline", Bounds { deliver_by: Some(3), ..calm(6) }),
        ("outbox: two broker processes and another member", Bounds { workers: 2, guest: true, ..calm(0) }),
        ("outbox: the daemon's file is lost", Bounds { wipes: 1, operations: 0, ..quiet }),
        ("outbox: the broker is restored", Bounds { restores: 1, ..calm(6) }),
    ]
}

/// Whole spaces, as large as they get within minutes.
fn full(days: u8) -> Vec<(&'static str, Bounds)> {
    let (usual, quiet) = (Bounds::usual(days), quiet(days));
    let processes = Bounds { workers: 2, ..Bounds::usual(days.min(3)) };
    let restored = Bounds { restores: 1, ..quiet };
    let two_sends = Bounds { second: Second::Send, operations: 0, ..restored };
    vec![
        ("outbox: crashes, doubled copies, a destination that vanishes", alone(days)),
        ("outbox: the same, day by day", Bounds { stride: 1, ..alone(days) }),
        ("outbox: an operator", usual),
        ("outbox: an operator, day by day", Bounds { stride: 1, ..quiet }),
        ("outbox: an operator who forces other words", Bounds { patches: true, ..quiet }),
        ("outbox: messages with a deadline", Bounds { deliver_by: Some(3), ..usual }),
        ("outbox: messages with a later deadline", Bounds { deliver_by: Some(6), ..usual }),
        (
            "outbox: two broker processes, another member, a limiter that refuses",
            Bounds { guest: true, limiter: true, operations: 0, ..processes },
        ),
        ("outbox: two broker processes and an operator", processes),
        ("outbox: the daemon's file is lost", Bounds { wipes: 1, ..alone(days) }),
        (
            "outbox: the daemon's file is lost, and an operator",
            Bounds { wipes: 1, doubled: 1, vanishings: 1, ..calm(days.min(12)) },
        ),
        (
            "outbox: the daemon's file is lost, an operator and every other fault",
            Bounds { wipes: 1, ..Bounds::usual(days.min(3)) },
        ),
        ("outbox: the broker is restored, and an operator", restored),
        ("outbox: the broker is restored after two sends", Bounds { days: days.min(12), ..two_sends }),
        (
            "outbox: the broker is restored after two sends, two days at a time",
            Bounds { days: days.min(10), stride: 2, ..two_sends },
        ),
    ]
}

/// Nobody operates.
const fn alone(days: u8) -> Bounds {
    Bounds { operations: 0, ..Bounds::usual(days) }
}

/// The daemon crashes, answers and copies get lost.
const fn quiet(days: u8) -> Bounds {
    Bounds { broker_crashes: 0, doubled: 0, vanishings: 0, ..Bounds::usual(days) }
}

/// Only answers and copies get lost.
const fn calm(days: u8) -> Bounds {
    Bounds { crashes: 0, ..quiet(days) }
}
