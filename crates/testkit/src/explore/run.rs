//! Named searches with what is expected of them.

use serde::{Deserialize, Serialize};

use super::search::{Limits, Liveness, NO_END, Seen, Until, search};
use super::{World, delivery, envelope, outbox, turn};
use crate::stopwatch::Stopwatch;

/// A search to be made.
pub struct Run {
    /// What is different in its world.
    pub name: &'static str,
    /// What must come of it.
    pub expected: Expected,
    /// The invariant a planted fault must break.
    pub found_as: Option<&'static str>,
    limits: Limits,
    search: Box<dyn Fn(&Limits) -> Seen + Send + Sync>,
}

/// What a search must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// The whole space, and nothing broken.
    Holds,
    /// A planted fault, found.
    Found,
    /// A planted fault that another rule makes up for, so that nothing is broken.
    MadeUpFor,
}

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What fits into an ordinary test.
    Small,
    /// Everything, in worlds that last so long.
    Full {
        /// The broker forgets an id after seven.
        days: u8,
    },
}

/// A search that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// See [`Run::name`].
    pub name: String,
    /// See [`Run::expected`].
    pub expected: Expected,
    /// See [`Run::found_as`].
    pub found_as: Option<String>,
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// The longest shortest trace.
    pub depth: usize,
    /// Whether every state was visited.
    pub whole: bool,
    /// How long it took.
    pub elapsed_ms: u64,
    /// What was broken.
    pub findings: Vec<Finding>,
}

/// Something that must not be, and how it came about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Which invariant.
    pub name: String,
    /// The steps that lead there.
    pub trace: Vec<String>,
    /// The state in words.
    pub state: String,
}

/// Every search of every world: what must hold, then the plants.
pub fn all(scope: Scope) -> Vec<Run> {
    let mut runs = outbox::runs(scope);
    runs.extend(delivery::runs(scope));
    runs.extend(turn::runs(scope));
    runs.extend(envelope::runs(scope));
    runs.extend(outbox::plants(scope));
    runs.extend(delivery::plants(scope));
    runs.extend(turn::plants(scope));
    runs.extend(envelope::plants(scope));
    runs
}

impl Run {
    /// The whole of `world` must hold, ends included.
    pub(super) fn holds<W>(name: &'static str, world: W, states_max: usize) -> Run
    where
        W: World + Send + Sync + 'static,
    {
        let limits = Limits { states_max, liveness: Liveness::Checked, until: Until::Whole };
        Run::new(name, Expected::Holds, limits, world)
    }

    /// `world` carries a planted fault that must show as `found_as`.
    pub(super) fn breaks<W>(name: &'static str, found_as: &'static str, world: W, states_max: usize) -> Run
    where
        W: World + Send + Sync + 'static,
    {
        let (liveness, until) = match found_as {
            NO_END => (Liveness::Checked, Until::Whole),
            invariant => (Liveness::Unchecked, Until::Broken(invariant)),
        };
        let limits = Limits { states_max, liveness, until };
        Run { found_as: Some(found_as), ..Run::new(name, Expected::Found, limits, world) }
    }

    /// `world` carries a planted fault that other rules make up for.
    pub(super) fn made_up_for<W>(name: &'static str, world: W, states_max: usize) -> Run
    where
        W: World + Send + Sync + 'static,
    {
        Run { expected: Expected::MadeUpFor, ..Run::holds(name, world, states_max) }
    }

    fn new<W>(name: &'static str, expected: Expected, limits: Limits, world: W) -> Run
    where
        W: World + Send + Sync + 'static,
    {
        let search = Box::new(move |limits: &Limits| search(&world, limits));
        Run { name, expected, found_as: None, limits, search }
    }

    /// Makes the search.
    pub fn make(&self) -> Ran {
        let stopwatch = Stopwatch::start();
        let seen = (self.search)(&self.limits);
        let finding = |violation: super::Violation| Finding {
            name: violation.name.to_owned(),
            trace: violation.trace,
            state: violation.state,
        };
        Ran {
            name: self.name.to_owned(),
            expected: self.expected,
            found_as: self.found_as.map(str::to_owned),
            states: seen.states,
            steps: seen.steps,
            depth: seen.depth,
            whole: seen.whole,
            elapsed_ms: stopwatch.elapsed_us() / 1_000,
            findings: seen.violations.into_iter().map(finding).collect(),
        }
    }
}

impl Ran {
    /// Whether it came to what was expected.
    pub fn is_as_expected(&self) -> bool {
        match self.expected {
            Expected::Holds | Expected::MadeUpFor => self.whole && self.findings.is_empty(),
            Expected::Found => {
                let names: Vec<_> = self.findings.iter().map(|finding| finding.name.as_str()).collect();
                names == self.found_as.as_deref().as_slice()
            }
        }
    }
}
