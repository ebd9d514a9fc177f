//! One daemon's outbox, a broker and what may happen between them.
//!
//! Two ids of one member: 0 is what a caller sends, 1 its successor after a requeue, or a second send. Another member may use the text of id 0. Copies may wait in the network for ever
//! and be doubled; answers and words get lost; daemon and broker crash; the clock ticks past ages and windows;
//! the destination vanishes and returns; an operator requeues, forces or aborts; a daemon is wiped, a broker
//! restored from a backup.
//!
//! - Every decision is one of [`Rules`]: the functions of `model`, or a planted fault's variant of one.
//! - A transaction is one step. What a room does around a rule (which row it looks at, what it writes with it)
//!   is a step here too, and those that carry a promise can be taken out by a plant.
//! - The broker remembers an id for seven days, so an attempted row lives for six; the clock moves by one day,
//!   two or three at a time.

mod broker;
mod check;
mod daemon;
mod ended;
mod fault;
mod form;
mod operator;
mod plants;
mod row;
mod rules;
mod runs;
mod state;
mod time;
mod variants;

pub use check::INVARIANTS;
pub use plants::plants;
pub use rules::{Clock, Habits, Rules};
pub use runs::runs;

use super::{Edges, World};
use state::{Guest, State};

/// How much may happen in a world.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long it lasts, in days.
    pub days: u8,
    /// By how many of them the clock moves at once.
    pub stride: u8,
    /// Broker processes at work.
    pub workers: usize,
    /// Whether another member sends with the same text of an id.
    pub guest: bool,
    /// Crashes of the daemon.
    pub crashes: u8,
    /// Crashes of the broker.
    pub broker_crashes: u8,
    /// Requests the network doubles.
    pub doubled: u8,
    /// Times the destination vanishes, to return once.
    pub vanishings: u8,
    /// What an operator does: requeue, force or abort.
    pub operations: u8,
    /// Whether a forced successor may carry other words.
    pub patches: bool,
    /// When every message's own deadline passes, in days.
    pub deliver_by: Option<u8>,
    /// Whether the limiter may refuse.
    pub limiter: bool,
    /// Times the daemon's file is lost and the caller uses its id for other words.
    pub wipes: u8,
    /// Times the broker comes back from an older backup.
    pub restores: u8,
    /// What id 1 is.
    pub second: Second,
}

/// What the second id is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// It replaces the first one after a requeue.
    Successor,
    /// A caller sends another message.
    Send,
}

/// A world within bounds, under rules.
#[derive(Clone, Copy)]
pub struct Outbox {
    /// How much may happen.
    pub bounds: Bounds,
    /// Who decides.
    pub rules: Rules,
}

impl Bounds {
    /// One of each fault that hurts, and one operation; the clock moves by three days.
    pub const fn usual(days: u8) -> Bounds {
        Bounds {
            days,
            stride: 3,
            workers: 1,
            guest: false,
            crashes: 1,
            broker_crashes: 1,
            doubled: 1,
            vanishings: 1,
            operations: 1,
            patches: false,
            deliver_by: None,
            limiter: false,
            wipes: 0,
            restores: 0,
            second: Second::Successor,
        }
    }
}

impl World for Outbox {
    type State = State;

    fn starts(&self) -> Vec<State> {
        let start = State::start(&self.bounds);
        if self.bounds.guest {
            // Under the shared id the other member says the same words, or others.
            [0, 1].map(|words| State { guest: Guest { words, ..start.guest }, ..start }).to_vec()
        } else {
            vec![start]
        }
    }

    fn next(&self, state: &State, edges: &mut Edges<State>) {
        let first = edges.count();
        self.daemon_steps(state, edges);
        self.ended_steps(state, edges);
        self.broker_steps(state, edges);
        self.operator_steps(state, edges);
        self.fault_steps(state, edges);
        edges.settle_from(first, |state| self.settle_form(state));
    }

    fn broken(&self, state: &State, names: &mut Vec<&'static str>) {
        self.check(state, names);
    }

    fn is_end(&self, state: &State) -> bool {
        self.has_ended(state)
    }

    fn show(&self, state: &State) -> String {
        state.to_string()
    }
}
