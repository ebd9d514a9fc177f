//! Every crash point of the daemon times every state of a row: killed there, started again, judged.
//!
//! For each state, a life that is only watched names the points its work reaches. Then, for each of them, a row is
//! brought into the state, the daemon dies at the point, a next life heals, and everything about the cell is looked
//! at: the row, its successor, the next message of its lane, a mail that arrived meanwhile, and the logs.
//!
//! Invariants:
//! - Ids are the cell's own, so a log that holds one twice names the cell.
//! - What was answered with 2xx is looked for before anything is asked again.

mod judge;
mod life;
mod state;

use super::site::Site;
use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::stopwatch::Stopwatch;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use state::State;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// Which states; each is a column of the matrix.
    pub states: Vec<State>,
    /// Which points of those a state's work reaches.
    pub points: Points,
    /// What is wrong with the daemon on purpose; something must be found then.
    pub planted: Option<String>,
    /// How long a healed row is waited for.
    pub patience: Duration,
}

/// A choice of crash points.
#[derive(Clone, Debug)]
pub enum Points {
    /// Each, at its first visits up to this many.
    All {
        /// Visits of one point.
        visits_max: u64,
    },
    /// These, each at one visit.
    Only(Vec<(String, u64)>),
}

/// One death.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// What the row was.
    pub state: State,
    /// Where the daemon died.
    pub point: String,
    /// At which visit.
    pub visit: u64,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Cells whose point was reached: the daemon died there.
    pub died: BTreeSet<Cell>,
    /// Cells whose point was not reached in that life; it was killed from outside.
    pub missed: BTreeSet<Cell>,
    /// Messages answered with 2xx.
    pub acked: u64,
    /// Calls without an answer.
    pub unanswered: u64,
    /// Acknowledged and gone, a sentence each.
    pub lost: Vec<String>,
    /// Twice where once is right, a sentence each.
    pub doubled: Vec<String>,
    /// Whatever else must not be.
    pub amiss: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

/// Kills, heals and judges, cell after cell.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let mut run = Run {
        site: Site::open(&plan.binary, &[], &[])?,
        planted: plan.planted.clone().into_iter().collect(),
        patience: plan.patience,
        cells: 0,
        inbox_after: 0,
        outcome: Outcome::default(),
    };
    for state in &plan.states {
        let reached = run.watch(*state)?;
        for (point, visit) in plan.points.of(&reached) {
            run.cell(Cell { state: *state, point, visit })?;
        }
    }
    run.outcome.elapsed = watch.elapsed();
    Ok(run.outcome)
}

/// What all cells share.
struct Run {
    site: Site,
    planted: Vec<String>,
    patience: Duration,
    /// Numbers the ids.
    cells: u64,
    /// The last row of the subject's inbox that was looked at.
    inbox_after: u64,
    outcome: Outcome,
}

/// One cell's names and what its callers were told.
struct Trial {
    state: State,
    /// Names the cell in sentences.
    name: String,
    /// The row's id.
    id: String,
    /// The next message of its lane.
    next: String,
    /// What the witness sends to the subject.
    mail: String,
    /// Where the row and the next message go.
    to: String,
    /// The message the row became, when the state is one in which it had.
    accepted_as: Option<String>,
    /// Whether the next message was answered with 2xx before the death.
    next_acked: bool,
}

impl Run {
    /// The points that a whole trial in `state` reaches, and how often.
    fn watch(&mut self, state: State) -> Result<BTreeMap<String, u64>, FleetError> {
        let mut trial = self.begin(state, &format!("{state}, watched"))?;
        self.live(&mut trial, &["watch".to_owned()])?;
        self.site.subject.kill9();
        let mut points = BTreeMap::new();
        for line in self.site.subject.said().lines() {
            if let Some((_, point)) = line.split_once(": reached ") {
                *points.entry(point.to_owned()).or_default() += 1;
            }
        }
        self.heal()?;
        self.judge(trial)?;
        Ok(points)
    }

    fn cell(&mut self, cell: Cell) -> Result<(), FleetError> {
        let name = format!("{}, dead at {} visit {}", cell.state, cell.point, cell.visit);
        let mut trial = self.begin(cell.state, &name)?;
        let mut faults = self.planted.clone();
        faults.push(format!("crash:{}:{}", cell.point, cell.visit));
        let died = self.live(&mut trial, &faults)?;
        self.site.subject.kill9();
        if died { &mut self.outcome.died } else { &mut self.outcome.missed }.insert(cell);
        self.heal()?;
        self.judge(trial)
    }

    /// A new row in `state`, the daemon dead behind it.
    fn begin(&mut self, state: State, name: &str) -> Result<Trial, FleetError> {
        self.cells += 1;
        let n = self.cells;
        let mut trial = Trial {
            state,
            name: name.to_owned(),
            id: format!("row.{n}"),
            next: format!("next.{n}"),
            mail: format!("mail.{n}"),
            to: if state.is_to_nobody() { format!("@nobody-{n}") } else { format!("#cell-{n}") },
            accepted_as: None,
            next_acked: false,
        };
        self.site.pass_a_minute()?;
        state.bring_about(&mut self.site, &mut trial)?;
        self.outcome.acked += 1;
        Ok(trial)
    }

    /// A life without a crash, its link open.
    fn heal(&mut self) -> Result<(), FleetError> {
        self.site.subject.restart(&self.planted)?;
        self.site.subject.await_link()
    }
}

impl Points {
    fn of(&self, reached: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
        match self {
            Self::All { visits_max } => reached
                .iter()
                .flat_map(|(point, times)| (1..=(*times).min(*visits_max)).map(|n| (point.clone(), n)))
                .collect(),
            Self::Only(points) => points.clone(),
        }
    }
}

impl Outcome {
    /// Nothing lost, doubled or amiss.
    pub fn holds(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.amiss.is_empty()
    }

    /// What two runs of different states showed, as one.
    pub fn and(mut self, other: Self) -> Self {
        self.died.extend(other.died);
        self.missed.extend(other.missed);
        self.lost.extend(other.lost);
        self.doubled.extend(other.doubled);
        self.amiss.extend(other.amiss);
        self.acked += other.acked;
        self.unanswered += other.unanswered;
        self.elapsed = self.elapsed.max(other.elapsed);
        self
    }

    /// Everything that must not be, a sentence each.
    pub fn findings(&self) -> Vec<String> {
        self.lost.iter().chain(&self.doubled).chain(&self.amiss).cloned().collect()
    }

    /// The points died at, each with the states in which it was.
    pub fn matrix(&self) -> BTreeMap<&str, BTreeSet<State>> {
        let mut matrix: BTreeMap<&str, BTreeSet<State>> = BTreeMap::new();
        for cell in &self.died {
            matrix.entry(&cell.point).or_default().insert(cell.state);
        }
        matrix
    }
}
