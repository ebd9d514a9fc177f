//! Two brokers of one mesh, over one PostgreSQL and one Redis, that die in turn while callers use them.
//!
//! Two daemons reach them through a balancer and fail over; direct callers turn to whichever listens; an impatient
//! one hangs up within milliseconds. Everybody writes to one topic, so one log orders everything.
//!
//! Invariants:
//! - Each broker has a clock of its own, minutes to days apart from the machine's; every life sets it anew.
//! - The first faults are one of each kind, whatever the seed; the rest is the seed's.
//! - Waiting for the end needs no quiet time: a last message of every writer, seen, says that all before it is there.
//! - The audit sees every row: it leaves out the last minutes, so the rows are made older for it.

mod balancer;
mod clocks;
mod closing;
pub mod failover;
mod faults;
mod stage;
mod writer;

use super::FleetError;
use crate::bin::Binary;
use crate::history::{Verdict, check, read_folder};
use crate::postgres;
use crate::stopwatch::Stopwatch;
use faults::Faults;
use stage::Stage;
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How long faults fall.
    pub span: Duration,
    /// Decides which faults fall when, and what writers do.
    pub seed: u64,
    /// What is wrong with the brokers on purpose.
    pub planted: Planted,
}

/// A bug for the run to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None: nothing may be found.
    Nothing,
    /// Ids are written in a transaction of their own, and brokers die between the two.
    DedupeApart,
    /// Brokers take their process's clock for the store's.
    ProcessClock,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// The history's verdict.
    pub verdict: Verdict,
    /// Receipts that the log does not bear out, a sentence each.
    pub gone: Vec<String>,
    /// What else must not be, a sentence each.
    pub amiss: Vec<String>,
    /// Calls that got no answer.
    pub unanswered: u64,
    /// Calls whose caller hung up.
    pub hung_up: u64,
    /// Receipts that named a message's id and place.
    pub receipts: u64,
    /// Real time, from the first start to the verdict.
    pub elapsed: Duration,
}

/// Breaks, heals, reads and judges.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let history = TempDir::new()?;
    let (stage, mut servers) = Stage::open(&plan.binary, postgres::Private::start()?, history.path())?;
    let mut faults = Faults::new(plan.seed, plan.planted);
    let log = std::thread::scope(|scope| {
        let writers: Vec<_> =
            stage.writers(plan.seed)?.into_iter().map(|writer| scope.spawn(|| writer.write())).collect();
        let broken = faults.fall(&stage, &mut servers, plan.span);
        stage.end();
        for writer in writers {
            writer.join().expect("a writer ends with an error, not with a panic")?;
        }
        broken?;
        closing::close(&stage)
    })?;
    closing::audit(&stage, &mut servers)?;
    let verdict = check(&read_folder(history.path())?);
    let (receipts, gone) = stage.told.compare(&log);
    Ok(Outcome {
        faults: faults.counts(),
        verdict,
        gone,
        amiss: stage.amiss(),
        unanswered: stage.unanswered(),
        hung_up: stage.hung_up(),
        receipts,
        elapsed: watch.elapsed(),
    })
}

impl Outcome {
    /// Nothing lost, nothing doubled, nothing amiss.
    pub fn holds(&self) -> bool {
        self.verdict.holds() && self.gone.is_empty() && self.amiss.is_empty()
    }

    /// Everything that must not be, a sentence each.
    pub fn findings(&self) -> Vec<String> {
        let others = self.gone.iter().chain(&self.amiss).cloned();
        self.verdict.broken.iter().map(ToString::to_string).chain(others).collect()
    }
}
