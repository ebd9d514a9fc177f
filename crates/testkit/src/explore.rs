//! Small-state exploration: every state a bounded world can come into, visited once.
//!
//! - Breadth first, so that the first trace to anything is a shortest one.
//! - States are compared whole; their hash only says where to look. A space is whole or the search says it is not.
//! - Safety: named invariants, looked at in every state. A state that breaks one is not gone on from.
//! - Liveness: once faults stop, from every state an end can be reached by the protocol's own steps.
//! - The worlds in [`outbox`], [`delivery`], [`turn`] and [`envelope`] decide nothing themselves: they call the rules of
//!   `model`, and a planted fault puts a broken rule in the place of a real one.

pub mod delivery;
pub mod envelope;
pub mod outbox;
mod run;
mod search;
mod store;
pub mod turn;

use std::fmt;
use std::hash::Hash;

pub use run::{Expected, Finding, Ran, Run, Scope, all};
pub use search::{Limits, Liveness, NO_END, Seen, Until, Violation, search};

/// A bounded world.
pub trait World {
    /// All there is to know at one moment.
    type State: Clone + Eq + Hash;

    /// The states it may begin in.
    fn starts(&self) -> Vec<Self::State>;

    /// Everything that may happen next.
    fn next(&self, state: &Self::State, edges: &mut Edges<Self::State>);

    /// The names of the invariants `state` breaks.
    fn broken(&self, state: &Self::State, names: &mut Vec<&'static str>);

    /// Whether everything came to an end the product names.
    fn is_end(&self, state: &Self::State) -> bool;

    /// The state in words, for the end of a trace.
    fn show(&self, state: &Self::State) -> String;
}

/// What happened, in words, and to which row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    words: &'static str,
    row: Option<usize>,
}

/// Whether a step still happens after faults have stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sooner or later, when nothing disturbs.
    Protocol,
    /// Only while things go wrong, or somebody wants it.
    Fault,
}

/// The ways on from one state.
pub struct Edges<S>(Vec<Edge<S>>);

struct Edge<S> {
    step: Step,
    kind: Kind,
    to: S,
}

impl Step {
    /// Something that happened to nobody's row in particular.
    pub const fn of(words: &'static str) -> Step {
        Step { words, row: None }
    }

    /// Something that happened to a row.
    pub const fn to(words: &'static str, row: usize) -> Step {
        Step { words, row: Some(row) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "{} (id {row})", self.words),
            None => f.write_str(self.words),
        }
    }
}

impl<S> Edges<S> {
    /// A step the protocol takes by itself.
    pub fn protocol(&mut self, step: Step, to: S) {
        self.0.push(Edge { step, kind: Kind::Protocol, to });
    }

    /// A step that needs a fault, or somebody's wish.
    pub fn fault(&mut self, step: Step, to: S) {
        self.0.push(Edge { step, kind: Kind::Fault, to });
    }

    /// Brings every state reached from place `first` on into its one form.
    pub fn settle_from(&mut self, first: usize, form: impl Fn(&mut S)) {
        self.0[first..].iter_mut().for_each(|edge| form(&mut edge.to));
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
