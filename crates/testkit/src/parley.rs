//! Two agents under the command adapter talk to each other while everything is killed: product, adapters, programs.
//!
//! Each message is a number, each program answers with the next one. An automatic chain has a bound, so the driver
//! begins a new one every so many messages; during each it kills everything once, at a moment nobody chose.
//!
//! Invariants:
//! - A program notes and syncs what it was handed before it answers. The judge reads those notes and the agents'
//!   inboxes, and nothing else.
//! - A message interrupted once too often is named by the door; the driver then goes on with the next number.

mod judge;
mod stage;

use crate::bin::{Binary, Home};
use crate::kills::KillsError;
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use stage::Stage;
use std::time::Duration;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How many messages.
    pub messages: u64,
    /// How often everything is killed, once in each chain.
    pub kills: u64,
    /// Decides the moments.
    pub seed: u64,
    /// Faults of the binary, for controls.
    pub faults: Vec<String>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Times everything was killed.
    pub kills: u64,
    /// Numbers that arrived.
    pub messages: u64,
    /// Programs started.
    pub programs: u64,
    /// Of these, for messages marked as redelivered.
    pub reruns: u64,
    /// Messages the door lists as given up.
    pub given_up: u64,
    /// Numbers that nobody received, or that have neither a program nor a name for their end.
    pub lost: Vec<String>,
    /// Numbers received or first attempted twice.
    pub doubled: Vec<String>,
    /// Out of order, or unmarked.
    pub broken: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

/// Talks, kills, heals and judges.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, KillsError> {
    let watch = Stopwatch::start();
    let home = Home::new(plan.binary.clone())?;
    let chain = plan.messages.div_ceil(plan.kills.max(1));
    let mut stage = Stage::open(&home, plan, chain)?;
    let mut seeded = Seeded::new(plan.seed);
    for first in (0..plan.messages).step_by(usize::try_from(chain).unwrap_or(usize::MAX)) {
        let last = (first + chain).min(plan.messages) - 1;
        stage.say(first)?;
        stage.await_number(first + seeded.below(chain.div_ceil(2)))?;
        stage.let_run(Duration::from_millis(seeded.below(60)))?;
        stage.kill_everything()?;
        stage.await_end(last)?;
    }
    let mut outcome = stage.close(plan.messages)?;
    outcome.elapsed = watch.elapsed();
    Ok(outcome)
}

impl Outcome {
    /// Nothing lost, doubled or broken.
    pub fn holds(&self) -> bool {
        self.findings().is_empty()
    }

    /// Everything that must not be.
    pub fn findings(&self) -> Vec<String> {
        self.lost.iter().chain(&self.doubled).chain(&self.broken).cloned().collect()
    }
}
