//! Random histories with faults, and what `explain` says of every id in them, compared with the driver's own log.
//!
//! The driver decides what becomes of each id: delivered, held for a node that is away, addressed to nobody, retired,
//! requeued, too late, sent twice, used for other words, taken in turns that end, fail, are interrupted or given up, or
//! kept or withdrawn at a relay whose upstream is away.
//! Meanwhile the product dies at commits and at random moments. When it is healed, every id is asked about.
//!
//! Invariants:
//! - What must be said follows from the driver's log alone.
//! - A call without an answer is asked again with the same ids until it has one; nothing else is decided by luck.

mod acts;
mod stage;

use crate::bin::{Binary, Home};
use crate::kills::KillsError;
use crate::refusals::Refused;
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use acts::{ACTS, Fate, Stopped};
use stage::Stage;
use std::collections::BTreeMap;
use std::time::Duration;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How many histories.
    pub histories: u64,
    /// How many ids that were never sent are asked about at the end.
    pub never: u64,
    /// Decides acts, points and moments.
    pub seed: u64,
    /// Faults of the binary, for controls.
    pub faults: Vec<String>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Deaths by kind.
    pub deaths: BTreeMap<String, u64>,
    /// Ids by what became of them.
    pub fates: BTreeMap<String, u64>,
    /// Ids asked about.
    pub asked: u64,
    /// What the driver was refused.
    pub refused: Refused,
    /// What was said otherwise than the log has it, a sentence each.
    pub wrong: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

/// Acts of one history.
const ACTS_MIN: u64 = 3;
const ACTS_MORE: u64 = 5;

/// Makes histories, asks, compares.
///
/// # Errors
/// When the run cannot be finished; a wrong answer is no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, KillsError> {
    let watch = Stopwatch::start();
    let (home, lab) = (Home::new(plan.binary.clone())?, Home::new(plan.binary.clone())?);
    let mut stage = Stage::open(&home, &lab, plan)?;
    let mut seeded = Seeded::new(plan.seed);
    let mut outcome = Outcome::default();
    let is_control = !plan.faults.is_empty();
    for history in 0..plan.histories {
        let fates = perform(&mut stage, &mut seeded, history)?;
        compare(&mut stage, &fates, &mut outcome, is_control)?;
        if is_control && !outcome.holds() {
            break;
        }
    }
    let never = (0..plan.never).map(|n| Fate::never(&stage.fresh_id(&format!("never-{n}")), "never sent"));
    let never: Vec<Fate> = never.collect();
    compare(&mut stage, &never, &mut outcome, is_control)?;
    outcome.refused = stage.judge_refused()?;
    outcome.wrong.append(&mut stage.wrong);
    outcome.deaths = stage.deaths();
    outcome.elapsed = watch.elapsed();
    Ok(outcome)
}

impl Outcome {
    /// Everything was said as the log has it, and nothing was stored that was refused.
    pub fn holds(&self) -> bool {
        self.wrong.is_empty() && self.refused.stored.is_empty()
    }
}

fn perform(stage: &mut Stage<'_>, seeded: &mut Seeded, history: u64) -> Result<Vec<Fate>, KillsError> {
    stage.begin_history(seeded)?;
    let mut fates = Vec::new();
    for n in 0..ACTS_MIN + seeded.below(ACTS_MORE) {
        stage.maybe_die(seeded)?;
        let act = ACTS[seeded.index(ACTS.len())];
        match act(stage, &format!("h{history}-{n}")) {
            Ok(more) => fates.extend(more),
            Err(Stopped::Refused) => {}
            Err(Stopped::Broken(error)) => return Err(error),
        }
    }
    Ok(fates)
}

/// A message on its way is given time to arrive; what is said then counts. A control has done its work with the first
/// wrong word.
fn compare(
    stage: &mut Stage<'_>,
    fates: &[Fate],
    outcome: &mut Outcome,
    is_control: bool,
) -> Result<(), KillsError> {
    stage.heal()?;
    for fate in fates {
        outcome.asked += 1;
        *outcome.fates.entry(fate.kind.to_owned()).or_default() += 1;
        if let Err(said) = stage.await_said(fate)? {
            let Fate { id, kind, verdict, code, .. } = fate;
            outcome.wrong.push(format!("{id} ({kind}) must be {verdict} {code:?}; explain says {said}"));
            if is_control {
                break;
            }
        }
    }
    Ok(())
}
