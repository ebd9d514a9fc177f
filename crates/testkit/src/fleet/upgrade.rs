//! A team that changes its version: a broker on either store, two homes and a relay work under one binary and go on
//! under another, all at once, one machine after the other, or from state that was stored long ago.
//!
//! Invariants:
//! - What the first binary told its callers is written down ([`Told`]) and is all that the judge compares with.
//! - Both binaries are driven by the same commands and doors; no step depends on which of them runs.

mod history;
mod judge;
mod stored;
mod team;
mod told;

use super::FleetError;
use super::races::Store;
use crate::bin::Binary;
use crate::stopwatch::Stopwatch;
use std::time::Duration;
use team::{BOUND, Part, Team};

pub use stored::{StoredTeam, store_team};
pub use told::Told;

/// In which order the parts change their version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Everything stops, everything starts again.
    AllAtOnce,
    /// An old daemon and an old relay with a new broker, then the daemons and the relay.
    BrokerFirst,
    /// New daemons and a new relay with an old broker, then the broker.
    BrokerLast,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AllAtOnce, Self::BrokerFirst, Self::BrokerLast];

    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllAtOnce => "all at once",
            Self::BrokerFirst => "the broker first, then daemons and relay",
            Self::BrokerLast => "daemons and relay first, then the broker",
        }
    }

    fn steps(self) -> &'static [Part] {
        match self {
            Self::AllAtOnce => &[],
            Self::BrokerFirst => &[Part::Broker, Part::Ann, Part::Bob, Part::Relay],
            Self::BrokerLast => &[Part::Ann, Part::Bob, Part::Relay, Part::Broker],
        }
    }
}

/// What is taken out of the old state on purpose before the new binary opens it; the judge must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A row that waits in a mailbox.
    WaitingRow,
    /// The broker's memory of an id.
    KnownId,
    /// A write that waits at the relay.
    WaitingWrite,
}

impl Damage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::WaitingRow, Self::KnownId, Self::WaitingWrite];

    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::WaitingRow => "a message that waits in a mailbox is taken out of the old state",
            Self::KnownId => "the broker's row of a known id is taken out of the old state",
            Self::WaitingWrite => "a write that waits at the relay is taken out of the old state",
        }
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Makes the history.
    pub old: Binary,
    /// Goes on.
    pub new: Binary,
    /// The broker's store.
    pub store: Store,
    /// Who changes when.
    pub order: Order,
    /// Messages of each kind, and between two steps.
    pub messages: u64,
    /// Only with everything at once and on SQLite.
    pub damage: Option<Damage>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Sends, posts and writes answered with 2xx.
    pub acked: u64,
    /// Changes of a part's version.
    pub changes: u64,
    /// What does not go on, a sentence each.
    pub broken: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

/// Runs it.
///
/// # Errors
/// When a part does not start or does not answer; what is lost is no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let mut team = Team::open(&plan.old, plan.store)?;
    let mut outcome = Outcome::default();
    let mut told = history::make(&mut team, plan.messages)?;
    for step in plan.order.steps() {
        team.change(*step, &plan.new, &[])?;
        outcome.changes += 1;
        let name = format!("{step:?}").to_lowercase();
        history::go_on(&team, &name, plan.messages, BOUND, &mut told)?;
    }
    if plan.order == Order::AllAtOnce {
        history::leave_waiting(&mut team, plan.messages, &mut told)?;
        team.stop();
        if let Some(damage) = plan.damage {
            stored::damage(&team, damage)?;
        }
        team.start(&plan.new, &[])?;
        outcome.changes += 4;
    }
    outcome.broken = judge::judge(&mut team, &mut told, patience(plan.damage))?;
    outcome.acked = told.acked();
    outcome.elapsed = watch.elapsed();
    Ok(outcome)
}

/// What is not missing on purpose is awaited however busy the machine is.
fn patience(damage: Option<Damage>) -> Duration {
    if damage.is_some() { Duration::from_secs(5) } else { BOUND }
}
